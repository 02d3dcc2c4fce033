// @ts-check
// Each user gets 1,000 tokens per minute, for prompts and answers. The gateway reserves an estimate, and settles the actual count
// when the answer ends or the client disconnects.
//
//   node examples/llm-gateway/server.js           plays three users
//   node examples/llm-gateway/server.js --serve   serves
import { once } from 'node:events'
import express from 'express'
import { createLimiter, slidingWindow } from 'slidegate'
import { denialOf, draft11Headers, userKey } from 'slidegate/http'
import { listen } from '../support/listen.js'
import { answer, tokensOf } from './model.js'

const budget = createLimiter({
  name: 'tokens',
  limits: [slidingWindow({ name: 'tokens', limit: 1000, window: '1m' })],
})

const model = await listen(answer, 0)
const gateway = express()

gateway.post('/completions', express.json(), async (req, res) => {
  const hangUp = new AbortController()
  res.once('close', () => hangUp.abort())
  const { prompt, maxTokens } = req.body ?? {}
  if (typeof prompt !== 'string' || !Number.isInteger(maxTokens) || maxTokens < 1) return res.sendStatus(400)
  // Replace this with your authentication.
  const user = userKey(req.get('X-User'))
  const reservation = await budget.reserve(user, tokensOf(prompt) + maxTokens)
  const { allowed, decision } = reservation
  for (const { name, value } of draft11Headers(decision)) res.setHeader(name, value)
  if (!allowed) {
    const { status, headers, body } = denialOf(decision, { accept: req.get('Accept') })
    for (const { name, value } of headers) res.setHeader(name, value)
    return res.status(status).end(body)
  }

  let used = tokensOf(prompt)
  try {
    for await (const token of tokensFrom(prompt, maxTokens, hangUp.signal)) {
      used++
      res.write(`${token}\n`)
    }
  } catch (error) {
    // Stops the model. The tokens up to now are charged.
    if (!hangUp.signal.aborted) throw error
  } finally {
    const { returned } = await reservation.settle(used)
    const { remaining } = await budget.peek(user)
    console.log(`${user}: ${decision.cost} reserved, ${used} used, ${returned} refunded, ${remaining} left`)
    gateway.emit('settled')
  }
  res.end()
})

/** @param {string} prompt @param {number} maxTokens @param {AbortSignal} signal */
async function* tokensFrom(prompt, maxTokens, signal) {
  const body = JSON.stringify({ prompt, maxTokens })
  const response = await fetch(model.url, { method: 'POST', body, signal })
  let rest = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

const { server, url } = await listen(gateway)
console.log(url)
if (!process.argv.includes('--serve')) {
  await playUsers()
  server.close()
  model.server.close()
}

async function playUsers() {
  console.log('\nAda reserves 400 tokens, and the answer has 40:')
  await complete('ada', 'count to 40', 400)

  console.log('\nThree concurrent answers do not fit, because their lengths are unknown:')
  const answers = [1, 2, 3].map(() => complete('ada', 'count to 100', 400))
  await Promise.all(answers)

  console.log('\nTheir actual lengths are settled, and there is room again:')
  await complete('ada', 'count to 40', 400)

  console.log('\nBob disconnects halfway, and is charged for the tokens so far:')
  const settled = once(gateway, 'settled')
  await complete('bob', 'count to 500', 500, 20)
  await settled

  console.log('\nEve requests more tokens than a minute allows:')
  await complete('eve', 'count to 2000', 2000)
}

/** @param {string} user @param {string} prompt @param {number} maxTokens */
async function complete(user, prompt, maxTokens, hangUpAfter = Number.POSITIVE_INFINITY) {
  const hangUp = new AbortController()
  const response = await fetch(`${url}/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-User': user },
    body: JSON.stringify({ prompt, maxTokens }),
    signal: hangUp.signal,
  })
  if (!response.ok) {
    await response.text()
    const retryAfter = response.headers.get('Retry-After')
    console.log(
      `user:${user}: ${response.status}, ${retryAfter === null ? 'never' : `retry in ${retryAfter} s`}`,
    )
    return
  }
  let text = ''
  try {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk
      if (tokensOf(text) >= hangUpAfter) hangUp.abort()
    }
  } catch (error) {
    if (!hangUp.signal.aborted) throw error
  }
}
