// Modal dialogs, with a form that confirms an action.

import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { sentenceOf } from './status.tsx'

/** A modal dialog, open for as long as it is rendered. Escape closes it, and the focus goes back to where it was. */
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
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    const dialog = element.current!
    dialog.showModal()
    return () => {
      // While it is open nothing else can have the focus.
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
 * Asks whether something should be done, does it, and closes; or says why it could not be done. Fields that the action
 * needs are its children.
 */
export function Confirm({
  title,
  action,
  isDangerous = false,
  isReady = true,
  onConfirm,
  onClose,
  children,
}: {
  readonly title: string
  /** What the button says: a verb. */
  readonly action: string
  readonly isDangerous?: boolean
  /** Whether fields are filled in as they have to be. Default: true. */
  readonly isReady?: boolean
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
  /** What it will do, in a sentence. */
  readonly children: ComponentChildren
}) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const confirm = async (event: Event): Promise<void> => {
    event.preventDefault()
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
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? 'dangerous' : 'primary'} disabled={isBusy || !isReady}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
