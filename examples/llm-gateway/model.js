// @ts-check
// Simulates a language model: for `count to 40` it returns 40 words, one every few milliseconds, up to its maximum. Each line is
// a token.
import { setTimeout as delay } from 'node:timers/promises'

/** @param {string} text */
export function tokensOf(text) {
  return text.split(/\s+/).filter(Boolean).length
}

/**
 * @param {import('node:http').IncomingMessage} req
 * @param {import('node:http').ServerResponse} res
 */
export async function answer(req, res) {
  let body = ''
  for await (const chunk of req) body += chunk
  const { prompt, maxTokens } = JSON.parse(body)
  const words = Number(/count to (\d+)/.exec(prompt)?.[1] ?? 10)
  res.writeHead(200, { 'Content-Type': 'text/plain' })
  for (let word = 1; word <= Math.min(words, maxTokens) && !res.destroyed; word++) {
    res.write(`${word}\n`)
    await delay(4)
  }
  res.end()
}
