// Finds the cause of denials from the denied keys: abuse, a limit that is too tight, or an unclear cause.

import type { History } from '../../../server/src/admin/api-types.ts'
import type { TopKeyList } from '../api-types.ts'
import { KeyLink } from '../components/key-link.tsx'
import { Notice, type Tone } from '../components/status.tsx'
import { count, duration, ratio, share } from '../format.ts'
import { demandInWords, idOf, type KeyTraffic, rangeInWords } from './key-traffic.ts'
import { type Network, networksOf, prefixOf } from './networks.ts'

/** A limiter's traffic in the last few minutes. */
export interface Evidence {
  readonly spanMs: number
  readonly requests: number
  readonly denied: number
  /** Requests that a shadow limit would have denied. */
  readonly shadowDenied: number
  readonly deniedBySecond: readonly number[]
  /** The estimated number of distinct callers. */
  readonly callers: number
  /** The keys with the most requests or denials. */
  readonly keys: readonly KeyTraffic[]
  /** Upper bound on the requests for any key that isn't listed. */
  readonly unlisted: number
}

export interface Verdict {
  readonly kind: 'none' | 'abuse' | 'retries' | 'distributed' | 'tight' | 'unclear'
  readonly title: string
  /** The numbers behind the verdict, and what to do or check. */
  readonly text: string
  /** The keys that the verdict is about, sorted by denials in descending order. */
  readonly keys: readonly KeyTraffic[]
  readonly networks: readonly Network<KeyTraffic>[]
}

/** A network is listed if it sent at least this share of an attack's requests. */
const OF_ATTACK = 0.1
const ENOUGH_DENIALS = 20
/** With fewer callers, it isn't known how much demand is usual. */
const ENOUGH_CALLERS = 10
/** Keys explain the denials if they account for at least this share of them. */
const MOST = 0.5
const NEARLY_ALL = 0.9
/** A demand of at least this multiple of the limit is far above it. */
const FAR = 3
/** A demand of up to this multiple is close to the limit. At most half of the requests are then denied. */
const CLOSE = 2
/** Maximum number of keys that count as few. `FEW_SHARE` is relative to the number of callers. */
const FEW = 10
const FEW_SHARE = 0.05
/** A network with at least this number of keys at the limit is crowded. */
const CROWDED = 5
/** At least this number of keys or callers counts as many. */
const MANY = 10

/** Determines why requests are denied. */
export function verdictOf(evidence: Evidence): Verdict {
  const { spanMs, requests, denied, shadowDenied, keys } = evidence
  const span = `the last ${duration(Math.round(spanMs / 1000) * 1000)}`
  if (denied === 0) {
    const shadow = ` Shadow limits would have denied ${count(shadowDenied)} of ${count(requests)} requests.`
    return made('none', 'No denials', `Nothing was denied in ${span}.${shadowDenied > 0 ? shadow : ''}`)
  }
  const ofAll = `${count(denied)} of ${count(requests)} requests in ${span} were denied.`
  if (denied < ENOUGH_DENIALS) {
    return made(
      'unclear',
      'Too few denials to judge',
      `${ofAll} A verdict needs at least ${ENOUGH_DENIALS} denials.`,
    )
  }
  const dimensions = new Set(keys.filter(isDenied).map(({ dimension }) => dimension))
  const verdicts = Array.from(dimensions, (dimension) => judge(dimension, evidence))
  const found =
    verdicts.find(({ kind }) => kind === 'distributed') ??
    verdicts.find(({ kind }) => kind !== 'unclear') ??
    verdicts[0] ??
    unclear('The service doesn’t know which keys were denied.')
  return { ...found, text: `${ofAll} ${found.text}` }
}

/** Judges the keys in one dimension. */
function judge(dimension: string | undefined, evidence: Evidence): Verdict {
  const { denied, callers } = evidence
  const keys = evidence.keys.filter((each) => each.dimension === dimension)
  const deniedKeys = keys.filter(isDenied)
  const first = deniedKeys[0]!
  const shareOf = (some: readonly KeyTraffic[]) => deniedOf(some) / denied
  const far = deniedKeys.filter(isFar)
  const behind = shareOf(far) >= MOST ? judgeCallersBehind(far, evidence) : undefined
  if (behind !== undefined) return behind
  if (shareOf([first]) >= MOST && isClose(first)) {
    const text = `This key is only slightly above the limit. An override or a plan can raise its limit.`
    return made('tight', `The limit is too tight for ${first.key}`, text, [first])
  }
  const isAlone = shareOf([first]) >= 0.9 && first.shareDenied.least >= NEARLY_ALL
  if (isAlone && isSteady(evidence.deniedBySecond)) {
    const text = `Its rate stays the same although nearly all its requests are denied. The client probably retries in a loop. Ask its owner to fix the client, or block the key for a while.`
    return made('retries', `${first.key} doesn’t back off`, text, [first])
  }
  const networks = judgeNetworks(keys)
  if (networks !== undefined) return networks
  const isByFew = far.length <= Math.max(FEW, callers * FEW_SHARE) && shareOf(far) >= MOST
  if (isByFew && callers >= ENOUGH_CALLERS) {
    const title = `This looks like abuse by ${far.length === 1 ? far[0]!.key : `${far.length} keys`}`
    const text = `There are about ${count(callers)} callers. ${far.length === 1 ? 'This one is' : 'These are'} far above the limit. Contact ${far.length === 1 ? 'its owner' : 'their owners'}, or block ${far.length === 1 ? 'the key' : 'the keys'} for a while.`
    return made('abuse', title, text, far)
  }
  if (isByFew) {
    const text = `With only ${callers === 1 ? 'one caller' : `${count(callers)} callers`}, it isn’t known how much demand is usual. Either this is abuse, or the limit is far too low.`
    return unclear(text, far)
  }
  const many = judgeMany(keys, callers)
  if (many.kind !== 'unclear' || shareOf([first]) < MOST) return many
  return unclear(reasonsFor(first), [first])
}

/** Uses another dimension to find out whether many callers are behind a few keys. */
function judgeCallersBehind(far: readonly KeyTraffic[], evidence: Evidence): Verdict | undefined {
  const dimensions = new Set(evidence.keys.map(({ dimension }) => dimension))
  dimensions.delete(far[0]!.dimension)
  const needed = far.reduce((sum, { requests }) => sum + requests.least, 0)
  for (const dimension of dimensions) {
    const others = evidence.keys.filter((each) => each.dimension === dimension)
    const least = fewestWith(needed, others, evidence.unlisted)
    const networks = networksOf(others).filter(
      ({ keys }) => keys.length > 1 && requestsOf(keys) >= OF_ATTACK * needed,
    )
    const isOneNetwork = networks.some(({ keys }) => keys.length >= MANY && requestsOf(keys) >= MOST * needed)
    if (least < (isOneNetwork ? MANY : MANY * far.length)) continue
    const behind = `Their requests come from at least ${count(least)} keys in the dimension ${dimension}`
    if (prefixOf(far[0]!.key) === undefined && others.filter(hasAddress).length > others.length / 2) {
      const whose = far.length === 1 ? `${far[0]!.key} is` : `${far.length} keys are`
      const title = `${whose} attacked from many addresses`
      return made('distributed', title, `${behind}.`, far, networks)
    }
    return unclear(
      `${behind}. They may belong to many callers, or to one caller who is trying many keys. To find out, check whether their requests succeed.`,
      far,
    )
  }
  return undefined
}

/** The minimum number of keys that can have sent this many requests. */
function fewestWith(requests: number, keys: readonly KeyTraffic[], unlisted: number): number {
  let rest = requests
  let fewest = 0
  for (const { most } of keys.map((each) => each.requests).toSorted((a, b) => b.most - a.most)) {
    if (rest <= 0) return fewest
    rest -= most
    fewest++
  }
  return rest <= 0 || unlisted === 0 ? fewest : fewest + Math.ceil(rest / unlisted)
}

/** Finds out whether most of the denied keys are addresses in the same networks. */
function judgeNetworks(keys: readonly KeyTraffic[]): Verdict | undefined {
  const deniedKeys = keys.filter(isDenied)
  const crowded = networksOf(keys).flatMap(({ prefix, keys }) => {
    const full = keys.filter((each) => isDenied(each) || (each.demand?.least ?? 0) >= NEARLY_ALL)
    return full.length >= CROWDED && full.length > keys.length / 2 ? [{ prefix, keys: full }] : []
  })
  const inCrowds = crowded.flatMap(({ keys }) => keys)
  if (inCrowds.length < MANY || mostDeniedOf(inCrowds) < MOST * mostDeniedOf(deniedKeys)) return undefined
  const where = `${count(inCrowds.length)} of the listed keys are denied or at the limit, and share ${crowded.length === 1 ? 'a network' : `${count(crowded.length)} networks`}.`
  if (crowded.every(({ prefix }) => PRIVATE.test(prefix))) {
    const text = `${where} These addresses are private. Either the limit is too tight for your own callers, or one of them is an attacker. Check who owns the addresses.`
    return unclear(text, [], crowded)
  }
  const text = `${where} If the addresses belong to a customer, however, the limit is too tight.`
  return made('distributed', 'This looks like one attacker with many addresses', text, [], crowded)
}

/** Judges denials that are spread over many keys. */
function judgeMany(keys: readonly KeyTraffic[], callers: number): Verdict {
  const deniedKeys = keys.filter(isDenied)
  // Keys with uncertain counts are in neither list. Keys far above the limit have the most certain counts.
  const close = deniedKeys.filter(isClose)
  const far = deniedKeys.filter(isFar)
  if (close.length >= FEW / 2 && deniedOf(close) >= 4 * deniedOf(far)) {
    const text = `At least ${count(deniedKeys.length)} callers are affected. Usually, only a small share of a caller’s requests is denied.`
    return made('tight', 'The limit is too tight', text, deniedKeys)
  }
  if (far.length > FEW && deniedOf(far) > deniedOf(close)) {
    const text = `At least ${count(far.length)} keys are far above the limit, and share no network. Either the limit is far too low, or one attacker has many keys. Compare the keys’ demand now with their usual demand.`
    return unclear(text, far)
  }
  const isUncertain = close.length + far.length < deniedKeys.length / 2
  const text = isUncertain
    ? `The service only counts the busiest keys exactly. With about ${count(callers)} callers, it doesn’t know what share of each caller’s requests was denied.`
    : 'Some of the denied keys are far above the limit, others are close to it. No single cause explains most denials.'
  return unclear(text, deniedKeys)
}

const PRIVATE = /^(10\.|127\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|f[cd]..:)/

/** Explains why the key with most of the denials can't be judged. */
function reasonsFor({ shareDenied, demand }: KeyTraffic): string {
  if (demand === undefined) return 'This key’s limits aren’t known, so neither is its demand.'
  if (shareDenied.least < MOST) return 'The estimated counts for this key are too uncertain.'
  if (demand.most >= FAR && demand.least < FAR) {
    return 'Perhaps this key’s requests came in a burst, cost more than 1, or were blocked. The window may also be longer than the period shown. The key’s page shows the cause.'
  }
  return `Its demand is too high to be explained by a slightly tight limit, and too low to suggest abuse. Compare it with the key’s usual demand.`
}

function isDenied({ denied }: KeyTraffic): boolean {
  return denied.least > 0
}

function isFar({ demand, shareDenied }: KeyTraffic): boolean {
  return demand !== undefined && demand.least >= FAR && shareDenied.least >= MOST
}

function isClose({ demand, shareDenied }: KeyTraffic): boolean {
  return shareDenied.most <= 1 / CLOSE || (demand !== undefined && demand.most <= CLOSE)
}

function hasAddress({ key }: KeyTraffic): boolean {
  return prefixOf(key) !== undefined
}

/** Returns a lower bound on these keys' denials. */
function deniedOf(keys: readonly KeyTraffic[]): number {
  return keys.reduce((sum, { denied }) => sum + denied.least, 0)
}

function requestsOf(keys: readonly KeyTraffic[]): number {
  return keys.reduce((sum, { requests }) => sum + requests.least, 0)
}

function mostDeniedOf(keys: readonly KeyTraffic[]): number {
  return keys.reduce((sum, { denied }) => sum + denied.most, 0)
}

const BIN_SECONDS = 5

/** Whether the rate is steady. The rate of independent requests would vary more. */
function isSteady(bySecond: readonly number[]): boolean {
  const from = bySecond.findIndex((each) => each > 0)
  const seconds = bySecond.slice(from, bySecond.findLastIndex((each) => each > 0) + 1)
  const bins = Array.from({ length: Math.floor(seconds.length / BIN_SECONDS) }, (_, i) =>
    seconds.slice(i * BIN_SECONDS, (i + 1) * BIN_SECONDS).reduce((sum, each) => sum + each, 0),
  )
  const mean = bins.reduce((sum, each) => sum + each, 0) / bins.length
  const variance = bins.reduce((sum, each) => sum + (each - mean) ** 2, 0) / bins.length
  return bins.length >= 6 && variance <= Math.max(mean / 2, (mean / 10) ** 2)
}

function unclear(
  text: string,
  keys: readonly KeyTraffic[] = [],
  networks: readonly Network<KeyTraffic>[] = [],
): Verdict {
  return made('unclear', 'Can’t tell', text, keys, networks)
}

function made(
  kind: Verdict['kind'],
  title: string,
  text: string,
  keys: readonly KeyTraffic[] = [],
  networks: readonly Network<KeyTraffic>[] = [],
): Verdict {
  return { kind, title, text, keys, networks }
}

/**
 * Collects the evidence from the service's reports.
 *
 * @param oldestMs the maximum age of the key counts, in milliseconds
 */
export function evidenceOf(
  history: History,
  requests: TopKeyList,
  keys: readonly KeyTraffic[],
  oldestMs: number,
): Evidence {
  // Covers the time span of the key counts plus their maximum age, or the whole history if no key was counted.
  const { length } = history.seconds
  const seconds =
    requests.spanMs === 0 ? length : Math.min(length, Math.ceil((requests.spanMs + oldestMs) / 1000))
  const sum = (column: readonly number[]) => column.slice(-seconds).reduce((all, each) => all + each, 0)
  const denied = sum(history.denied)
  return {
    spanMs: 1000 * seconds,
    requests: denied + sum(history.allowed),
    denied,
    shadowDenied: sum(history.shadowDenied),
    deniedBySecond: history.denied.slice(-seconds),
    callers: requests.distinct ?? 0,
    keys,
    unlisted: requests.unlisted,
  }
}

const TONES: Readonly<Record<Verdict['kind'], Tone>> = {
  none: 'good',
  abuse: 'warn',
  retries: 'warn',
  distributed: 'warn',
  tight: 'warn',
  unclear: 'plain',
}

const SHOWN = 3

/** Shows the verdict, with links to its keys. */
export function VerdictNotice({
  limiter,
  evidence,
  hasPages,
}: {
  readonly limiter: string
  readonly evidence: Evidence
  readonly hasPages: boolean
}) {
  const { kind, title, text, keys, networks } = verdictOf(evidence)
  const ofDenials = (part: number) => share(ratio(Math.min(part, evidence.denied), evidence.denied))
  return (
    <Notice tone={TONES[kind]}>
      <p data-verdict={kind}>
        <strong>{title}.</strong> {text}
      </p>
      {keys.length > 0 && (
        <ul>
          {keys.slice(0, SHOWN).map((each) => (
            <li key={idOf(each)}>
              <KeyLink limiter={limiter} of={each} hasPage={hasPages} />{' '}
              {rangeInWords(each.denied, ofDenials)} of the denials, {rangeInWords(each.shareDenied, share)}{' '}
              of its requests denied
              {each.demand !== undefined && `, demand ${demandInWords(each.demand)} the limit`}
            </li>
          ))}
          {keys.length > SHOWN && <li class="muted">and {count(keys.length - SHOWN)} more</li>}
        </ul>
      )}
      {networks.length > 0 && (
        <ul>
          {networks.slice(0, SHOWN).map(({ prefix, keys: members }) => (
            <li key={prefix}>
              <span class="mono">{prefix}</span> {count(members.length)} listed addresses
              {keys.length > 0
                ? `, ${share(ratio(Math.min(requestsOf(members), evidence.requests), evidence.requests))} of the requests`
                : mostDeniedOf(members) > 0 &&
                  `, ${rangeInWords({ least: deniedOf(members), most: mostDeniedOf(members) }, ofDenials)} of the denials`}
            </li>
          ))}
          {networks.length > SHOWN && (
            <li class="muted">and {count(networks.length - SHOWN)} more networks</li>
          )}
        </ul>
      )}
    </Notice>
  )
}
