import { Route, Router, Switch } from 'wouter-preact'
import { LiveProvider } from './live.tsx'
import { AuditPage } from './pages/audit.tsx'
import { ConfigurationPage } from './pages/configuration.tsx'
import { KeyPage } from './pages/key.tsx'
import { LimiterPage } from './pages/limiter.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { SignInPage } from './pages/sign-in.tsx'
import { SimulatorPage } from './pages/simulator.tsx'
import { usePlace } from './place.ts'
import { SessionProvider, useSession } from './session.tsx'
import { Bar, TokensBanner } from './shell.tsx'

/** All pages. The place is behind the #, so the service serves one file whatever is looked at. */
export function App() {
  return (
    <SessionProvider>
      <Router hook={usePlace}>
        <Shell />
      </Router>
    </SessionProvider>
  )
}

function Shell() {
  const { who, may } = useSession()
  const main = (
    <main id="main" tabIndex={-1}>
      {may('read') ? <Pages /> : <SignInPage />}
    </main>
  )
  const all = (
    <>
      {/* No link: the place behind the # is that of a page. */}
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <Bar />
      <TokensBanner />
      {main}
    </>
  )
  // Another who looks is told other things.
  return may('read') ? <LiveProvider key={`${who?.name} ${who?.role}`}>{all}</LiveProvider> : all
}

function Pages() {
  return (
    <Switch>
      <Route path="/limiters/:name/keys/:dimension/:key" component={KeyPage} />
      <Route path="/limiters/:name/keys/:key" component={KeyPage} />
      <Route path="/limiters/:name" component={LimiterPage} />
      <Route path="/simulator" component={SimulatorPage} />
      <Route path="/configuration" component={ConfigurationPage} />
      <Route path="/audit" component={AuditPage} />
      <Route component={OverviewPage} />
    </Switch>
  )
}
