import { useCallback, useEffect, useState } from 'preact/hooks'
import { ask } from './api.ts'
import { useLive } from './live.tsx'
import { useVisible } from './visible.ts'

/** What is known of an answer. */
export interface Asked<Answer> {
  /** The last that came; it stays while it is asked again. */
  readonly data: Answer | undefined
  /** Why the last one did not. */
  readonly error: Error | undefined
  /** Asks once more. */
  again(): void
}

export interface AskOptions {
  /** With one it is a POST. */
  readonly body?: unknown
  /** After which it is asked again, while anybody looks. Default: never. */
  readonly everyMs?: number
}

/** Asks the service, and again once a lost connection is back. @param path `undefined`: nothing yet */
export function useAsk<Answer>(path: string | undefined, { body, everyMs }: AskOptions = {}): Asked<Answer> {
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
        const asked = text === undefined ? undefined : JSON.parse(text)
        const data = await ask<Answer>(asked === undefined ? 'GET' : 'POST', path, asked, gone.signal)
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
  const again = useCallback(() => setTurn((last) => last + 1), [])
  // What was answered to another question is none of this one.
  const isOurs = state.of === of
  return {
    data: isOurs ? state.data : undefined,
    error: isOurs ? state.error : undefined,
    again,
  }
}
