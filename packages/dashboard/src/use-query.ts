// A hook that requests data from the service, and repeats the request at an interval.

import { useCallback, useEffect, useState } from 'preact/hooks'
import { request } from './api.ts'
import { useLive, useVisible } from './live.tsx'

/** The time after which an unanswered request counts as failed. The service's own deadlines are shorter. */
const DEADLINE_MS = 10_000

export interface Query<Answer> {
  /** The last response. Kept while the next response loads. */
  readonly data: Answer | undefined
  /** Why the last request failed. */
  readonly error: Error | undefined
  /** Sends the request again. */
  reload(): void
}

export interface QueryOptions {
  /** If present, the request is a POST. */
  readonly body?: unknown
  /** Repeats the request at this interval while the tab is visible. Default: never. */
  readonly everyMs?: number
}

/**
 * Queries the service now, and whenever a lost connection is restored.
 *
 * @param path `undefined` if there is nothing to query yet
 */
export function useQuery<Answer>(
  path: string | undefined,
  { body, everyMs }: QueryOptions = {},
): Query<Answer> {
  const { connections } = useLive()
  const isVisible = useVisible()
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState<{ of?: string; data?: Answer; error?: Error }>({})
  const text = body === undefined ? undefined : JSON.stringify(body)
  const of = `${path} ${text}`
  useEffect(() => {
    if (path === undefined || !isVisible) return
    const gone = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const turn = async (): Promise<void> => {
      try {
        const sent = text === undefined ? undefined : JSON.parse(text)
        const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(DEADLINE_MS)])
        const data = await request<Answer>(sent === undefined ? 'GET' : 'POST', path, sent, signal)
        setState({ of, data })
      } catch (error) {
        if (gone.signal.aborted) return
        setState((known) => ({
          of,
          error: error as Error,
          ...(known.of === of && { data: known.data }),
        }))
      }
      if (everyMs !== undefined && !gone.signal.aborted) timer = setTimeout(turn, everyMs)
    }
    void turn()
    return () => {
      clearTimeout(timer)
      gone.abort()
    }
  }, [of, everyMs, connections, turn, isVisible])
  const reload = useCallback(() => setTurn((last) => last + 1), [])
  // The response to an earlier query isn't shown.
  const isOurs = state.of === of
  return {
    data: isOurs ? state.data : undefined,
    error: isOurs ? state.error : undefined,
    reload,
  }
}
