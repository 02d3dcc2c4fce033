// The configuration page: in force, in the file, and set by operators.

import type { ConfigurationState } from '../../../server/src/admin/api-types.ts'
import { PageHeader } from '../components/page-header.tsx'
import { Badge, Loaded, Notice } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { limiterHref } from '../routes.ts'
import { useQuery } from '../use-query.ts'
import { ChangePanel } from './change-panel.tsx'
import { Diff, Problems } from './findings.tsx'
import './configuration.css'

export function ConfigurationPage() {
  const query = useQuery<ConfigurationState>('/v1/admin/configuration')
  return (
    <>
      <PageHeader title="Configuration">
        <button type="button" onClick={query.reload}>
          Look again
        </button>
      </PageHeader>
      <Loaded query={query}>
        {(configuration) => (
          <>
            {configuration.file !== '' && <FilePanel configuration={configuration} />}
            <section class="panel" aria-label="In force">
              <div class="panel-head">
                <h2>In force</h2>
                <span class="muted">Without secrets and comments.</span>
              </div>
              {configuration.inForce === '' ? (
                <p>The service was started without a file: its limiters stand in none.</p>
              ) : (
                // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
                <pre class="code" tabIndex={0}>
                  {configuration.inForce}
                </pre>
              )}
            </section>
            <ShadowSettingsPanel configuration={configuration} />
            <ChangePanel configuration={configuration} />
          </>
        )}
      </Loaded>
    </>
  )
}

function FilePanel({
  configuration: { file, problems, diff },
}: {
  readonly configuration: ConfigurationState
}) {
  return (
    <section class="panel" aria-label="File">
      <h2 class="mono">{file}</h2>
      {problems.length > 0 ? (
        <Notice tone="bad">
          <p>As it stands there now it cannot be put in force; what was before it still is:</p>
          <Problems problems={problems} />
        </Notice>
      ) : diff.length === 0 ? (
        <Notice tone="good">What it says is in force.</Notice>
      ) : (
        <>
          <Notice tone="warn">It says something else than what is in force.</Notice>
          <Diff label="From what is in force to the file" lines={diff} />
        </>
      )}
    </section>
  )
}

interface Word {
  readonly limiter: string
  readonly limit: string
  readonly isShadow: boolean
}

const WORD_COLUMNS: readonly Column<Word>[] = [
  {
    id: 'limiter',
    label: 'Limiter',
    cell: ({ limiter }) => <a href={limiterHref(limiter)}>{limiter}</a>,
  },
  { id: 'limit', label: 'Limit', cell: ({ limit }) => (limit === '*' ? 'all' : limit) },
  {
    id: 'word',
    label: 'What was said',
    cell: ({ isShadow }) =>
      isShadow ? <Badge tone="warn">shadow: only counts</Badge> : <Badge tone="good">enforced</Badge>,
  },
]

/** They stand before the configuration, and stay until they are taken back. */
function ShadowSettingsPanel({
  configuration: { shadowSettings },
}: {
  readonly configuration: ConfigurationState
}) {
  const words = Object.entries(shadowSettings).flatMap(([limiter, limits]) =>
    Object.entries(limits).map(([limit, isShadow]) => ({ limiter, limit, isShadow })),
  )
  return (
    <section class="panel" aria-label="Set by operators">
      <div class="panel-head">
        <h2>Set by operators</h2>
        <span class="muted">It stands before the configuration, until it is taken back.</span>
      </div>
      <Table
        label="What operators have said of limits"
        columns={WORD_COLUMNS}
        rows={words}
        keyOf={({ limiter, limit }) => `${limiter} ${limit}`}
        empty="Nothing: all limits are as the configuration says."
      />
    </section>
  )
}
