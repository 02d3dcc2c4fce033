// Modal dialogs, with a form that confirms an action.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { sentenceOf } from './status.tsx'
import { useUniqueId } from './unique-id.ts'

/** A modal dialog, open while it is rendered. Escape closes it, and the focus returns to where it was. */
function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useUniqueId()
  useEffect(() => {
    const before = document.activeElement
    const dialog = element.current!
    dialog.showModal()
    return () => {
      // Nothing else can have the focus while it is open.
      dialog.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <div class="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/**
 * A dialog that confirms an action, runs it and closes, or shows why it failed.
 *
 * Pass the fields that the action needs as children.
 */
export function Confirm({
  title,
  action,
  isDangerous = false,
  missing,
  onConfirm,
  onClose,
  children,
}: {
  readonly title: string
  /** The button's label: a verb. */
  readonly action: string
  readonly isDangerous?: boolean
  /** Why it can't be confirmed yet. */
  readonly missing?: string | undefined
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
  /** A sentence about what it does, and fields. */
  readonly children: ComponentChildren
}) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const missingId = useUniqueId()
  const confirm = async (event: Event & { readonly currentTarget: HTMLFormElement }): Promise<void> => {
    event.preventDefault()
    if (isBusy) return
    if (missing !== undefined) {
      const form = event.currentTarget
      const field =
        form.querySelector<HTMLElement>('[aria-invalid="true"]') ?? form.querySelector('input:enabled')
      if (field instanceof HTMLElement) field.focus()
      return
    }
    setBusy(true)
    setProblem(undefined)
    try {
      await onConfirm()
      onClose()
    } catch (error) {
      setProblem(sentenceOf(error as Error))
      setBusy(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="dialog-body" onSubmit={confirm}>
        {children}
        {problem !== undefined && (
          <p class="denied" role="alert">
            {problem}
          </p>
        )}
        <div class="dialog-foot">
          <span class="field-hint" id={missingId} role="status">
            {missing}
          </span>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          {/* Not `disabled`: the keyboard reaches it, and a screen reader reads why. */}
          <button
            type="submit"
            class={isDangerous ? 'dangerous' : 'primary'}
            aria-disabled={isBusy || missing !== undefined}
            aria-describedby={missing === undefined ? undefined : missingId}
          >
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
