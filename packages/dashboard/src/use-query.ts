// A request to the service as a hook: loading, failed or answered, and repeated at an interval.

import { useCallback, useEffect, useState } from 'preact/hooks'
import { request } from './api.ts'
import { useLive, useVisible } from './live.tsx'

/** An answer of the service, as far as it is known. */
export interface Query<Answer> {
  /** The last that came; it stays while it is asked again. */
  readonly data: Answer | undefined
  /** Why the last one did not. */
  readonly error: Error | undefined
  /** Sends the request once more. */
  reload(): void
}

export interface QueryOptions {
  /** With one it is a POST. */
  readonly body?: unknown
  /** After which it is asked again, while anybody looks. Default: never. */
  readonly everyMs?: number
}

/** Asks the service, and again once a lost connection is back. @param path `undefined`: nothing yet */
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
        const data = await request<Answer>(sent === undefined ? 'GET' : 'POST', path, sent, gone.signal)
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
  // What was answered to another question is none of this one.
  const isOurs = state.of === of
  return {
    data: isOurs ? state.data : undefined,
    error: isOurs ? state.error : undefined,
    reload,
  }
}
