// @ts-check
// A query costs its complexity: a book costs 1, and a hundred books with their authors cost 301. Each address gets 1,000 per
// minute.
//
//   node examples/graphql/server.js           plays some queries
//   node examples/graphql/server.js --serve   serves, with GraphiQL under /graphql
import { GraphQLError } from 'graphql'
import { getComplexity } from 'graphql-query-complexity'
import { createSchema, createYoga } from 'graphql-yoga'
import { createLimiter, slidingWindow } from 'slidegate'
import { addressKey, draft11Headers, problemOf, retryAfterHeaders } from 'slidegate/http'
import { listen } from '../support/listen.js'

const author = { name: 'Ada', books: (/** @type {{ first: number }} */ { first }) => books(first) }
const book = { title: 'Notes', author }
const books = (/** @type {number} */ first) => Array(Math.max(0, Math.min(first, 100))).fill(book)

const schema = createSchema({
  typeDefs: `
    type Query { books(first: Int! = 10): [Book!]! }
    type Book { title: String! author: Author! }
    type Author { name: String! books(first: Int! = 10): [Book!]! }
  `,
  resolvers: { Query: { books: (_, { first }) => books(first) } },
})

const limiter = createLimiter({
  name: 'graphql',
  limits: [slidingWindow({ name: 'complexity', limit: 1000, window: '1m' })],
})

/** The fields that Yoga adds on node:http. @typedef {{ req: import('node:http').IncomingMessage, res: import('node:http').ServerResponse }} Context */

/** @type {import('graphql-yoga').Plugin<Context>} */
const limitedByComplexity = {
  async onExecute({ args, setResultAndStopExecution }) {
    const { req, res } = args.contextValue
    const cost = costOf(args)
    const decision = await limiter.consume(addressKey(req.socket.remoteAddress), { cost })
    for (const { name, value } of [...draft11Headers(decision), ...retryAfterHeaders(decision)]) {
      res.setHeader(name, value)
    }
    if (decision.allowed) return
    const { title, status, ...problem } = problemOf(decision)
    const error = new GraphQLError(title, { extensions: { ...problem, cost, http: { status } } })
    setResultAndStopExecution({ errors: [error] })
  },
}

/** A field costs 1. A list costs its length times the cost of an item. @param {import('graphql').ExecutionArgs} args */
function costOf({ schema, document, variableValues, operationName }) {
  const complexity = getComplexity({
    schema,
    query: document,
    variables: variableValues ?? {},
    operationName: operationName ?? undefined,
    estimators: [({ args, childComplexity }) => 1 + Math.max(1, args.first ?? 1) * childComplexity],
  })
  // Costs are at most 2^40. Costs above the limit are always denied.
  return Math.min(Math.max(1, complexity), 2 ** 40)
}

const yoga = createYoga({ schema, plugins: [limitedByComplexity] })
const { server, url } = await listen(yoga)
console.log(url)
if (!process.argv.includes('--serve')) {
  await playQueries()
  server.close()
}

async function playQueries() {
  await ask('{ books(first: 1) { title } }')
  await ask('{ books(first: 100) { title } }')
  for (let n = 1; n <= 4; n++) await ask('{ books(first: 100) { title author { name } } }')
  await ask('{ books(first: 1) { title } }')
  await ask('{ books(first: 100) { author { books(first: 100) { title } } } }')
}

/** @param {string} query */
async function ask(query) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const { data, errors } = await response.json()
  const left = /r=(\d+)/.exec(response.headers.get('RateLimit') ?? '')?.[1]
  const retryAfter = response.headers.get('Retry-After')
  const answer =
    errors === undefined
      ? `${data.books.length} books`
      : `${errors[0].extensions['violated-policies']}: costs ${errors[0].extensions.cost}, ${retryAfter === null ? 'never' : `retry in ${retryAfter} s`}`
  console.log(`${query}\n  ${response.status}, ${answer}; ${left} left`)
}
