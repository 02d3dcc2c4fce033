import { Route, Router, Switch } from 'wouter-preact'
import { useHashLocation } from 'wouter-preact/use-hash-location'
import { ConfigurationPage } from './pages/configuration.tsx'
import { KeyPage } from './pages/key.tsx'
import { LimiterPage } from './pages/limiter.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { SimulatorPage } from './pages/simulator.tsx'

/** All pages. The place is behind the #, so the service serves one file whatever is looked at. */
export function App() {
  return (
    <Router hook={useHashLocation}>
      <main>
        <Switch>
          <Route path="/limiters/:name/keys/:key" component={KeyPage} />
          <Route path="/limiters/:name" component={LimiterPage} />
          <Route path="/simulator" component={SimulatorPage} />
          <Route path="/configuration" component={ConfigurationPage} />
          <Route component={OverviewPage} />
        </Switch>
      </main>
    </Router>
  )
}
