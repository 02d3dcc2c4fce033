// Modal dialogs, including one that confirms an action.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Field } from './field.tsx'
import { sentenceOf } from './status.tsx'
import { useUniqueId } from './unique-id.ts'

/** A modal dialog. The dialog is open while it is rendered. Closing it restores the focus. */
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
      // The dialog must be closed before another element can get the focus.
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

const MAX_REASON = 200

/** The operator's reason, for the audit log. Empty if the operator gives no reason. */
export interface Reason {
  readonly reason?: string
}

/**
 * A dialog that confirms an action, runs it and closes.
 *
 * The dialog has a field for a reason, and shows an error if the action fails. If the response has a `hint`,
 * the dialog stays open to show it. Pass the action's own fields as children.
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
  /** Why the action can't be confirmed yet. */
  readonly missing?: string | undefined
  readonly onConfirm: (reason: Reason) => Promise<unknown>
  readonly onClose: () => void
  /** A sentence that describes the action, followed by the action's fields. */
  readonly children: ComponentChildren
}) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const [reason, setReason] = useState('')
  const [hint, setHint] = useState<string>()
  const missingId = useUniqueId()
  const confirm = async (event: Event & { readonly currentTarget: HTMLFormElement }): Promise<void> => {
    event.preventDefault()
    if (isBusy) return
    if (hint !== undefined) {
      onClose()
      return
    }
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
      const given = reason.trim()
      const answer = (await onConfirm(given === '' ? {} : { reason: given })) as
        | { readonly hint?: string }
        | undefined
      if (answer?.hint === undefined) onClose()
      else setHint(`Done. Note that ${answer.hint}.`)
      setBusy(false)
    } catch (error) {
      setProblem(sentenceOf(error as Error))
      setBusy(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="dialog-body" onSubmit={confirm}>
        {children}
        <Field
          label="Reason (optional)"
          value={reason}
          onInput={setReason}
          problem={undefined}
          hint="Visible to everyone who can read the audit log."
          maxLength={MAX_REASON}
        />
        {hint !== undefined && (
          <p class="notice warn" role="status">
            {hint}
          </p>
        )}
        {problem !== undefined && (
          <p class="denied" role="alert">
            {problem}
          </p>
        )}
        <div class="dialog-foot">
          <span class="field-hint" id={missingId} role="status">
            {missing}
          </span>
          {hint === undefined && (
            <button type="button" onClick={onClose}>
              Cancel
            </button>
          )}
          {/* `aria-disabled` keeps the button reachable, so that screen readers can read why it is disabled. */}
          <button
            type="submit"
            class={isDangerous ? 'dangerous' : 'primary'}
            aria-disabled={isBusy || missing !== undefined}
            aria-describedby={missing === undefined ? undefined : missingId}
          >
            {hint === undefined ? action : 'Close'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
