// The frame around all pages: navigation, connection, theme, user.

import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { FindField } from './find/find-field.tsx'
import { timeOfDay } from './format.ts'
import { useLive } from './live.tsx'
import { useSession } from './session.tsx'
import { keptTheme, setTheme, type Theme } from './theme.ts'

const PLACES = [
  { label: 'Overview', href: '#/', isAt: (place: string) => place === '/' || place.startsWith('/limiters') },
  { label: 'Simulator', href: '#/simulator', isAt: (place: string) => place === '/simulator' },
  { label: 'Configuration', href: '#/configuration', isAt: (place: string) => place === '/configuration' },
  { label: 'Audit', href: '#/audit', isAt: (place: string) => place === '/audit' },
]

export function Bar() {
  const { may } = useSession()
  const [place] = useLocation()
  return (
    <header class="bar">
      <div class="bar-inner">
        <a class="brand" href="#/">
          <img src="./icon.svg" alt="" width="22" height="22" />
          slidegate
        </a>
        {may('read') && (
          <nav aria-label="Pages">
            {PLACES.map(({ label, href, isAt }) => (
              <a key={href} href={href} aria-current={isAt(place) ? 'page' : undefined}>
                {label}
              </a>
            ))}
          </nav>
        )}
        {may('read') && <FindField />}
        <div class="bar-end">
          {may('read') && <Connection />}
          <ThemeChoice />
          <Who />
        </div>
      </div>
    </header>
  )
}

/** Warns that the service has no tokens. */
export function TokensBanner() {
  const { who } = useSession()
  if (who === undefined || who.hasTokens) return null
  return (
    <aside class="banner" aria-label="Access">
      <p>
        This service has no tokens. Before other machines use it, set <code>auth.tokens</code> in its
        configuration.
      </p>
    </aside>
  )
}

/** Warns that the page is out of date. */
export function StaleBand() {
  const { state, overview, heardAtMs } = useLive()
  if (state !== 'lost' || overview === undefined) return null
  return (
    <aside class="banner stale-band" aria-label="Connection">
      <p role="alert">
        <b>No connection to the service since {timeOfDay(heardAtMs)}.</b> The numbers below are from that
        time. Retrying.
      </p>
    </aside>
  )
}

function Connection() {
  const { state } = useLive()
  const words = { connecting: 'Connecting', live: 'Live', lost: 'Connection lost, retrying' }[state]
  const dot = { connecting: '', live: 'good', lost: 'bad' }[state]
  return (
    <span class="connection" role="status">
      <span class={`dot ${dot}`} />
      {words}
    </span>
  )
}

function ThemeChoice() {
  const [theme, setChosen] = useState(keptTheme)
  return (
    <select
      aria-label="Colors"
      value={theme}
      onChange={(event) => {
        const chosen = event.currentTarget.value as Theme
        setTheme(chosen)
        setChosen(chosen)
      }}
    >
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  )
}

function Who() {
  const { who, hasToken, signOut } = useSession()
  if (who === undefined) return null
  return (
    <>
      <span>
        <span class="minor">{who.name} </span>
        <span class="muted">({who.role})</span>
      </span>
      {hasToken ? (
        <button type="button" class="small" onClick={signOut}>
          Sign out
        </button>
      ) : (
        <SignInLink />
      )}
    </>
  )
}

/** Lets anonymous readers sign in to get more permissions. */
function SignInLink() {
  const { who, askForToken } = useSession()
  if (who?.role === 'admin') return null
  return (
    <button type="button" class="small" onClick={askForToken}>
      Sign in
    </button>
  )
}
