import type { ConfigurationTold } from '../../../server/src/admin/overview.ts'
import { PageHeader } from '../components/page-header.tsx'
import { Answered, Badge, Notice } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { ChangePanel } from '../configuration/change-panel.tsx'
import { Diff } from '../configuration/diff.tsx'
import { Problems } from '../configuration/problems.tsx'
import { limiterHref } from '../place.ts'
import { useAsk } from '../use-ask.ts'
import '../configuration/configuration.css'

/** What is in force, what stands in the file, and what operators have said besides. */
export function ConfigurationPage() {
  const asked = useAsk<ConfigurationTold>('/v1/admin/configuration')
  return (
    <>
      <PageHeader title="Configuration">
        <button type="button" onClick={asked.again}>
          Look again
        </button>
      </PageHeader>
      <Answered asked={asked}>
        {(told) => (
          <>
            {told.file !== '' && <FilePanel told={told} />}
            <section class="panel" aria-label="In force">
              <div class="panel-head">
                <h2>In force</h2>
                <span class="muted">Without secrets and comments.</span>
              </div>
              {told.inForce === '' ? (
                <p>The service was started without a file: its limiters stand in none.</p>
              ) : (
                // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
                <pre class="code" tabIndex={0}>
                  {told.inForce}
                </pre>
              )}
            </section>
            <WordsPanel told={told} />
            <ChangePanel told={told} />
          </>
        )}
      </Answered>
    </>
  )
}

function FilePanel({ told: { file, problems, diff } }: { readonly told: ConfigurationTold }) {
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
function WordsPanel({ told: { shadowings } }: { readonly told: ConfigurationTold }) {
  const words = Object.entries(shadowings).flatMap(([limiter, limits]) =>
    Object.entries(limits).map(([limit, isShadow]) => ({ limiter, limit, isShadow })),
  )
  return (
    <section class="panel" aria-label="Said by operators">
      <div class="panel-head">
        <h2>Said by operators</h2>
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
