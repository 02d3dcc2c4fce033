// The signed-in user and their permissions.

import { type ComponentChildren, createContext } from 'preact'
import { useCallback, useContext, useEffect, useMemo, useState } from 'preact/hooks'
import { ApiError, keepToken, request, token, UNAUTHORIZED } from './api.ts'
import type { Role, Whoami } from './api-types.ts'

export interface Session {
  /** `stranger` if a token is needed, `unreachable` while the service doesn't respond. */
  readonly state: 'checking' | 'stranger' | 'known' | 'unreachable'
  readonly who: Whoami | undefined
  /** Whether the tab has a token. */
  readonly hasToken: boolean
  /** Why the last token was rejected. */
  readonly problem: string | undefined
  /** Whether the user has this role's permissions. */
  may(role: Role): boolean
  signIn(text: string): Promise<void>
  signOut(): void
  /** Opens the sign-in page for anonymous readers. */
  askForToken(): void
}

const RANK: Readonly<Record<Role, number>> = { check: 1, read: 2, admin: 3 }
const RETRY_MS = 2000

const Context = createContext<Session | undefined>(undefined)

export function useSession(): Session {
  return useContext(Context)!
}

type Known = Pick<Session, 'state' | 'who' | 'problem'>

export function SessionProvider({ children }: { readonly children: ComponentChildren }) {
  const [known, setKnown] = useState<Known>({ state: 'checking', who: undefined, problem: undefined })

  const check = useCallback(async (): Promise<void> => {
    const sent = token()
    try {
      const who = await request<Whoami>('GET', '/v1/admin/whoami')
      setKnown({ state: 'known', who, problem: undefined })
    } catch (error) {
      // Ignores the error, because the token has been replaced in the meantime.
      if (token() !== sent) return
      if (!(error instanceof ApiError) || error.status >= 500) {
        setKnown((last) => (last.state === 'known' ? last : { ...last, state: 'unreachable' }))
        return
      }
      keepToken(null)
      const problem =
        error.status === 401
          ? sent !== null
            ? 'The service rejected this token.'
            : undefined
          : `The service responded: ${error.message}`
      setKnown((last) => ({ state: 'stranger', who: undefined, problem: problem ?? last.problem }))
    }
  }, [])

  useEffect(() => {
    void check()
    // A token may be revoked while the page is open.
    const heed = (): void => {
      if (token() !== null) void check()
      else setKnown((last) => ({ ...last, state: 'stranger', who: undefined }))
    }
    addEventListener(UNAUTHORIZED, heed)
    return () => removeEventListener(UNAUTHORIZED, heed)
  }, [check])

  useEffect(() => {
    if (known.state !== 'unreachable') return
    const timer = setInterval(check, RETRY_MS)
    return () => clearInterval(timer)
  }, [known.state, check])

  const session = useMemo<Session>(
    () => ({
      ...known,
      hasToken: token() !== null,
      may: (role) => known.who !== undefined && RANK[known.who.role] >= RANK[role],
      signIn: (text) => {
        keepToken(text)
        return check()
      },
      signOut: () => {
        keepToken(null)
        setKnown({ state: 'checking', who: undefined, problem: undefined })
        void check()
      },
      askForToken: () => setKnown({ state: 'stranger', who: undefined, problem: undefined }),
    }),
    [known, check],
  )
  return <Context.Provider value={session}>{children}</Context.Provider>
}
