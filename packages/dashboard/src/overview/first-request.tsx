// Shows how to send a request, until the first one arrives.

import type { DeclaredLimiter } from '../api-types.ts'
import { Notice } from '../components/status.tsx'
import { useSession } from '../session.tsx'
import { useQuery } from '../use-query.ts'

export function FirstRequest() {
  const { who } = useSession()
  const { data } = useQuery<{ readonly limiters: readonly DeclaredLimiter[] }>('/v1/admin/limiters')
  const limiter = data?.limiters[0]
  if (limiter === undefined) return null
  const { name, limits } = limiter
  const dimensions = limits.flatMap(({ dimension }) => dimension ?? [])
  const key =
    dimensions.length === 0
      ? 'user:42'
      : Object.fromEntries(dimensions.map((dimension) => [dimension, `${dimension}:42`]))
  const token = who?.hasTokens ? ' -H "Authorization: Bearer $SLIDEGATE_TOKEN"' : ''
  return (
    <Notice>
      <p>There were no requests in the last few minutes. Send one:</p>
      <code>
        curl -i {new URL('./v1/consume', location.href).href} -H 'content-type: application/json'{token} -d '
        {JSON.stringify({ limiter: name, key })}'
      </code>
    </Notice>
  )
}
