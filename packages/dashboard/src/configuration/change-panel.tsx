// An editor for a new configuration. The service checks it without applying it.

import { useRef, useState } from 'preact/hooks'
import type {
  ConfigurationProblem,
  ConfigurationState,
  DiffLine,
} from '../../../server/src/admin/api-types.ts'
import { request } from '../api.ts'
import { Notice, Problem } from '../components/status.tsx'
import { useSession } from '../session.tsx'
import { Diff, Problems } from './findings.tsx'

interface Checked {
  readonly problems: readonly ConfigurationProblem[]
  readonly diff: readonly DiffLine[]
}

export function ChangePanel({ configuration }: { readonly configuration: ConfigurationState }) {
  const { may } = useSession()
  const [text, setText] = useState('')
  const [checked, setChecked] = useState<Checked>()
  const [error, setError] = useState<Error>()
  const [isBusy, setBusy] = useState(false)
  const area = useRef<HTMLTextAreaElement>(null)

  const write = (written: string): void => {
    setText(written)
    setChecked(undefined)
    setError(undefined)
  }
  const check = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      setChecked(await request<Checked>('POST', '/v1/admin/configuration/check', { text }))
    } catch (failure) {
      setChecked(undefined)
      setError(failure as Error)
    }
    setBusy(false)
  }
  const go = ({ line, column }: ConfigurationProblem): void => {
    const at = placeIn(text, line, column)
    area.current?.focus()
    area.current?.setSelectionRange(at, at)
  }

  return (
    <section class="panel" aria-label="Try a change">
      <div class="panel-head">
        <h2>Try a change</h2>
        <span class="muted">The service checks it without applying it.</span>
      </div>
      {may('admin') ? (
        <form class="change" onSubmit={check}>
          <label>
            <span>A complete configuration, in YAML or JSON</span>
            <textarea
              ref={area}
              class="mono"
              rows={14}
              spellcheck={false}
              value={text}
              onInput={({ currentTarget }) => write(currentTarget.value)}
            />
          </label>
          <div class="actions">
            <button type="submit" class="primary" disabled={isBusy || text.trim() === ''}>
              Check
            </button>
            <button type="button" onClick={() => write(configuration.inForce)}>
              Start from the active configuration
            </button>
            <span class="field-hint">Replace the secrets that are shown as ***. The check rejects ***.</span>
          </div>
        </form>
      ) : (
        <p>This requires a token with the admin role.</p>
      )}
      {error !== undefined && <Problem error={error} />}
      <div role="status">{checked !== undefined && <Result checked={checked} onGo={go} />}</div>
    </section>
  )
}

function Result({
  checked: { problems, diff },
  onGo,
}: {
  readonly checked: Checked
  readonly onGo: (problem: ConfigurationProblem) => void
}) {
  if (problems.length > 0) {
    return (
      <Notice tone="warn">
        <p>The configuration is invalid:</p>
        <Problems problems={problems} onGo={onGo} />
      </Notice>
    )
  }
  if (diff.length === 0) return <Notice tone="good">The configuration is valid and changes nothing.</Notice>
  return (
    <>
      <Notice tone="good">The configuration is valid and makes these changes.</Notice>
      <Diff label="Changes to the active configuration" lines={diff} />
    </>
  )
}

/** Returns the offset of a 1-based line and column. If there is no such line, returns the length of the text. */
function placeIn(text: string, line: number, column: number): number {
  let start = 0
  for (let at = 1; at < line; at++) {
    const end = text.indexOf('\n', start)
    if (end === -1) return text.length
    start = end + 1
  }
  const end = text.indexOf('\n', start)
  return Math.min(start + column - 1, end === -1 ? text.length : end)
}
