// START HERE: the routes to all pages. Routes come after the #, so the service serves one file for all pages.

import { render } from 'preact'
import { Route, Router, Switch } from 'wouter-preact'
import { takeTokenOfLink } from './api.ts'
import { AuditPage } from './audit/audit.tsx'
import { ConfigurationPage } from './configuration/configuration.tsx'
import { FindPage } from './find/find.tsx'
import { KeyPage } from './key/key.tsx'
import { LimiterPage } from './limiter/limiter.tsx'
import { LiveProvider } from './live.tsx'
import { OverviewPage } from './overview/overview.tsx'
import { useHashRoute } from './routes.ts'
import { RunbookPage } from './runbook/runbook.tsx'
import { SessionProvider, useSession } from './session.tsx'
import { Bar, StaleBand, TokensBanner } from './shell.tsx'
import { SignInPage } from './sign-in.tsx'
import { SimulatorPage } from './simulator/simulator.tsx'
import { keptTheme, setTheme } from './theme.ts'

function App() {
  return (
    <SessionProvider>
      <Router hook={useHashRoute}>
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
      {/* This is a button, because the router would treat a link's hash as a route. */}
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <Bar />
      <TokensBanner />
      <StaleBand />
      {main}
    </>
  )
  // Each user gets a new provider, because users may see different limiters.
  return may('read') ? <LiveProvider key={`${who?.name} ${who?.role}`}>{all}</LiveProvider> : all
}

function Pages() {
  return (
    <Switch>
      <Route path="/limiters/:name/keys/:dimension/:key" component={KeyPage} />
      <Route path="/limiters/:name/keys/:key" component={KeyPage} />
      <Route path="/limiters/:name" component={LimiterPage} />
      <Route path="/find/:key" component={FindPage} />
      <Route path="/simulator" component={SimulatorPage} />
      <Route path="/configuration" component={ConfigurationPage} />
      <Route path="/audit" component={AuditPage} />
      <Route path="/runbook/:alert?" component={RunbookPage} />
      <Route component={OverviewPage} />
    </Switch>
  )
}

setTheme(keptTheme())
takeTokenOfLink()
render(<App />, document.getElementById('app')!)
