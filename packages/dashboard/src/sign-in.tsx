// The sign-in page.

import { useState } from 'preact/hooks'
import { PageHeader } from './components/page-header.tsx'
import { Notice } from './components/status.tsx'
import { useSession } from './session.tsx'

export function SignInPage() {
  const { state, who, problem, signIn } = useSession()
  const [text, setText] = useState('')
  if (state === 'checking') return <p class="muted">Loading…</p>
  if (state === 'unreachable') {
    return (
      <Notice tone="bad">
        <p>The service is unreachable. Retrying every two seconds.</p>
      </Notice>
    )
  }
  return (
    <div class="sign-in panel">
      <PageHeader title="Sign in" />
      <form
        class="dialog-body"
        onSubmit={(event) => {
          event.preventDefault()
          void signIn(text.trim())
        }}
      >
        {who !== undefined &&
          (who.hasTokens ? (
            <p>
              {who.name} has the {who.role} role. Viewing the dashboard requires the read role, and making
              changes requires the admin role.
            </p>
          ) : (
            <p>Open the link that the service printed at startup, or enter the token from that link.</p>
          ))}
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            value={text}
            aria-describedby="token-hint"
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <span class="field-hint" id="token-hint">
            One of <code>auth.tokens</code> in the configuration. If there are none, use the token in the link
            that the service prints at startup. This tab keeps the token until you close it.
          </span>
        </label>
        {problem !== undefined && (
          <p class="denied" role="alert">
            {problem}
          </p>
        )}
        <div>
          <button type="submit" class="primary">
            Sign in
          </button>
        </div>
      </form>
    </div>
  )
}
