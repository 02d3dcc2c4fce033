// Loads a limiter's captured requests.

import { useState } from 'preact/hooks'
import { requestBlob } from '../api.ts'
import { sentenceOf } from '../components/status.tsx'
import { useUniqueId } from '../components/unique-id.ts'
import { useLive } from '../live.tsx'

/** Maximum number of requests that the service returns. */
const COUNT = 100_000

export function CapturedChoice({ onChoose }: { readonly onChoose: (name: string, file: Blob) => void }) {
  const { overview } = useLive()
  const names = overview?.limiters.map(({ name }) => name) ?? []
  const [chosen, setChosen] = useState<string>()
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const problemId = useUniqueId()
  const limiter = chosen ?? names[0]
  const load = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (limiter === undefined) return
    setBusy(true)
    setProblem(undefined)
    try {
      onChoose(`captured requests for ${limiter}`, await capturedOf(limiter))
    } catch (error) {
      setProblem(sentenceOf(error as Error))
    }
    setBusy(false)
  }
  return (
    <form onSubmit={load}>
      <label>
        <span>Captured requests for</span>
        <select value={limiter} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <button type="submit" disabled={isBusy || limiter === undefined} aria-describedby={problemId}>
        Load
      </button>
      <p id={problemId} class="denied" role="alert">
        {problem}
      </p>
    </form>
  )
}

/** Downloads captured requests as JSON lines, which the simulator can read. */
function capturedOf(limiter: string): Promise<Blob> {
  return requestBlob(`/v1/admin/capture?${new URLSearchParams({ limiter, count: `${COUNT}` })}`)
}
