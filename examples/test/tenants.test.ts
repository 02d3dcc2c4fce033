import { expect, it } from 'vitest'
import { played } from './support/example.ts'

it('plans and overrides apply at once, and earlier usage still counts', async () => {
  const printed = await played('tenants')
  const lines = printed.split('\n').filter((line) => /^(acme|umbrella|PUT|DELETE)\b/.test(line))
  expect(lines.map((line) => line.replace(/;t=\d+$/, ''))).toEqual([
    'acme: 10 of 11 served; "hour";q=10;w=3600; "hour";r=0',
    'umbrella: 11 of 11 served; "hour";q=100;w=3600; "hour";r=89',
    'PUT /tenants/acme/plan: 200, hour, 10 used, 90 left',
    'acme: 1 of 1 served; "hour";q=100;w=3600; "hour";r=89',
    'PUT /tenants/umbrella/limits: 200, hour, 11 used, 489 left',
    'umbrella: 300 of 300 served; "hour";q=500;w=3600; "hour";r=189',
    'DELETE /tenants/umbrella/limits: 200, hour, 311 used, 0 left',
    'umbrella: 0 of 1 served; "hour";q=100;w=3600; "hour";r=0',
  ])
})
