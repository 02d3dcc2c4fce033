// The configuration page: the active configuration, the file, and operators' settings.

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
          Reload
        </button>
      </PageHeader>
      <Loaded query={query}>
        {(configuration) => (
          <>
            {configuration.file !== '' && <FilePanel configuration={configuration} />}
            <section class="panel" aria-label="Active">
              <div class="panel-head">
                <h2>Active</h2>
                <span class="muted">Shown without secrets or comments.</span>
              </div>
              {configuration.inForce === '' ? (
                <p>The service was started without a configuration file.</p>
              ) : (
                // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach an element that scrolls
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
          <p>The file is invalid. The service keeps the previous configuration:</p>
          <Problems problems={problems} />
        </Notice>
      ) : diff.length === 0 ? (
        <Notice tone="good">The file is active.</Notice>
      ) : (
        <>
          <Notice tone="warn">The file differs from the active configuration.</Notice>
          <Diff label="Changes in the file" lines={diff} />
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
    label: 'Setting',
    cell: ({ isShadow }) =>
      isShadow ? <Badge tone="warn">shadow: never denies</Badge> : <Badge tone="good">enforced</Badge>,
  },
]

/** Operators' settings, which take precedence over the configuration until they are undone. */
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
        <span class="muted">
          These settings take precedence over the configuration until they are undone.
        </span>
      </div>
      <Table
        label="Limits set by operators"
        columns={WORD_COLUMNS}
        rows={words}
        keyOf={({ limiter, limit }) => `${limiter} ${limit}`}
        empty="All limits are as configured."
      />
    </section>
  )
}
