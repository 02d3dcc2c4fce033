// The runbook: what to do about a warning, even without access to the documentation.

import { PageHeader } from '../components/page-header.tsx'
import { piecesOf, runbookHref, SECTIONS, type Section } from './sections.ts'

export function RunbookPage({ params }: { readonly params: { readonly alert?: string } }) {
  const section = SECTIONS.find(({ name }) => name === params.alert)
  return (
    <>
      <PageHeader
        title={section?.name ?? 'Runbook'}
        crumbs={section === undefined ? [] : [{ label: 'Runbook', href: '#/runbook' }]}
      />
      {section === undefined ? <Contents /> : <Instructions section={section} />}
    </>
  )
}

function Contents() {
  return (
    <section class="panel timeless" aria-label="Alerts">
      <p class="muted">What to do about each alert. Boards are the Grafana dashboards in deploy/grafana.</p>
      <ul>
        {SECTIONS.map(({ name, paragraphs }) => (
          <li key={name}>
            <a href={runbookHref(name)}>{name}</a>: <Inline markdown={paragraphs[0] ?? ''} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Instructions({ section: { name, paragraphs, items } }: { readonly section: Section }) {
  return (
    <section class="panel timeless" aria-label={name}>
      {paragraphs.map((markdown) => (
        <p key={markdown}>
          <Inline markdown={markdown} />
        </p>
      ))}
      <ul>
        {items.map((markdown) => (
          <li key={markdown}>
            <Inline markdown={markdown} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Inline({ markdown }: { readonly markdown: string }) {
  return (
    <>
      {piecesOf(markdown).map(({ text, kind, alert }, i) => {
        const key = `${i} ${text}`
        if (alert !== undefined)
          return (
            <a key={key} href={runbookHref(alert)}>
              {text}
            </a>
          )
        if (kind === 'code') return <code key={key}>{text}</code>
        return kind === 'bold' ? <b key={key}>{text}</b> : text
      })}
    </>
  )
}
