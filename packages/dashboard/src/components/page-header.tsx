// The heading of a page.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

export interface Crumb {
  readonly label: string
  readonly href: string
}

let isFirst = true

/**
 * The heading of a page. It sets the document's title. After navigation, it gets the focus, so that keyboard
 * and screen reader users continue from there.
 */
export function PageHeader({
  title,
  crumbs = [],
  children,
}: {
  readonly title: string
  /** The parent pages. */
  readonly crumbs?: readonly Crumb[]
  /** Buttons and other content at the end of the line. */
  readonly children?: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · slidegate`
    if (!isFirst) {
      heading.current?.focus({ preventScroll: true })
      scrollTo(0, 0)
    }
    isFirst = false
  }, [title])
  return (
    <div class="page-header">
      <div>
        {crumbs.length > 0 && (
          <nav class="crumbs" aria-label="Parent pages">
            <ol>
              {crumbs.map(({ label, href }) => (
                <li key={href}>
                  <a href={href}>{label}</a>
                </li>
              ))}
            </ol>
          </nav>
        )}
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
      </div>
      {children !== undefined && <div class="actions">{children}</div>}
    </div>
  )
}
