// @ts-check
// Sends codes by text message, limited per phone number and per address. Persistent addresses are banned.
//
//   node examples/one-time-passwords/server.js           plays two days, on a manual clock
//   node examples/one-time-passwords/server.js --serve   serves, on the real clock
import express from 'express'
import { createLimiter, memoryStore, slidingWindow } from 'slidegate'
import { rateLimit } from 'slidegate/express'
import { clientAddress } from 'slidegate/http'
import { ManualClock } from 'slidegate/testing'
import { listen } from '../support/listen.js'

const serves = process.argv.includes('--serve')
const startMs = Date.now()
const clock = new ManualClock(startMs)

const limiter = createLimiter({
  name: 'codes',
  dimensions: {
    phone: [slidingWindow({ limit: 1, window: '30s' }), slidingWindow({ limit: 5, window: '1d' })],
    address: [slidingWindow({ limit: 3, window: '1m' })],
  },
  // Ban only addresses: callers choose the phone number, so they could get anyone's number blocked.
  ban: { address: { after: 3, within: '10m', for: ['10m', '1h', '1d'] } },
  ...(!serves && { store: memoryStore({ clock: clock.now }) }),
})

const app = express()
const address = clientAddress({ trust: ['loopback'] })

app.post(
  '/codes',
  express.json(),
  rateLimit({ limiter, key: (req) => ({ phone: phoneKey(req.body?.phone), address: address(req) }) }),
  (_req, res) => {
    res.send('A code is on its way.\n')
  },
)

/** Normalizes a phone number to a key. All invalid numbers share a key. @param {unknown} phone */
function phoneKey(phone) {
  const digits = String(phone).replace(/[^0-9]/g, '')
  return /^[1-9][0-9]{6,14}$/.test(digits) ? `phone:${digits}` : 'phone'
}

const { server, url } = await listen(app)
console.log(url)
if (!serves) {
  await playTwoDays()
  server.close()
}

async function playTwoDays() {
  const [home, office, attacker] = ['203.0.113.7', '198.51.100.20', '192.0.2.66']
  console.log('\nAda is impatient, and formats her number differently:')
  await ask(home, '+1 555 000 0001')
  await ask(home, '1-555-000-0001')
  clock.advance(30_000)
  await ask(home, '+1 555 000 0001')

  console.log('\nAn attacker requests messages to one number after another:')
  let number = 2
  for (const pauseMs of [0, 60_000, 540_000, 3_600_000]) {
    clock.advance(pauseMs)
    const tries = pauseMs === 60_000 ? 1 : 6
    for (let n = 1; n <= tries; n++) await ask(attacker, `+1 555 000 000${number++ % 10}`)
  }

  console.log('\nOther callers are not affected, not even with a number that the attacker tried:')
  await ask(office, '+1 555 000 0002')

  console.log('\nA day later, the attacker is admitted again:')
  clock.advance(86_400_000)
  await ask(attacker, '+1 555 000 0002')
}

/** @param {string} from @param {string} phone */
async function ask(from, phone) {
  const response = await fetch(`${url}/codes`, {
    method: 'POST',
    // Acts as the proxy that the app trusts.
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': from },
    body: JSON.stringify({ phone }),
  })
  const at = `${Math.round((clock.now() - startMs) / 1000)} s`
  console.log(`${at.padStart(8)}  ${from.padEnd(15)}${phone.padEnd(18)}${await answerOf(response)}`)
}

/** @param {Response} response */
async function answerOf(response) {
  if (response.ok) return `${response.status}`
  const problem = await response.json()
  const by = problem['violated-policies'].join(', ')
  return `${response.status}, retry in ${response.headers.get('Retry-After')} s (${by})`
}
