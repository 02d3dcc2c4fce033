import { describe, expect, it } from 'vitest'
import type { FinishedResponse, GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import {
  createLimiter,
  type Decision,
  failurePolicy,
  type Limiter,
  type Store,
  StoreUnavailableError,
} from '../../../src/index.ts'
import { type AdapterUnderTest, ask, newStore, perMinute, type Server, serve, until } from './fixture.ts'

/** Tests which units still count after the response. */
export function countingSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  type Options = GuardOptions<Args>

  describe('after the response', () => {
    const limiterOf = (limit: number, store: Store = newStore()): Limiter =>
      createLimiter({ limits: [perMinute(limit)], store })

    /** Waits until exactly this many units are used. */
    async function expectUsed(
      units: number,
      options: GuardOptions<Args>,
      requests: readonly Readonly<Record<string, string>>[],
    ): Promise<void> {
      const limiter = limiterOf(100)
      const server = await serve(adapter, { limiter, key: () => 'k', ...options })
      for (const headers of requests) await (await ask(server, headers)).text()
      await expect.poll(async () => 100 - (await limiter.peek('k')).remaining).toBe(units)
      expect(server.errors).toEqual([])
    }

    it('refundIf: successful keeps only the charges of failures, for example of logins', async () => {
      const answers: Record<string, string>[] = [
        {},
        { 'x-status': '401' },
        { 'x-status': '302' },
        { 'x-status': '500' },
      ]
      await expectUsed(2, { refundIf: 'successful' }, answers)
    })

    it('refundIf: failed refunds requests that were not served', async () => {
      await expectUsed(1, { refundIf: 'failed' }, [{}, { 'x-status': '404' }, { 'x-status': '503' }])
    })

    it('a refundIf function gets the response and the request', async () => {
      const refundIf: Options['refundIf'] = async (response, ...[request]) =>
        response.status === 202 && response.isComplete && adapter.header(request, 'x-free') === 'yes'
      const answers: Record<string, string>[] = [
        { 'x-status': '202' },
        { 'x-free': 'yes' },
        { 'x-status': '202', 'x-free': 'yes' },
        { 'x-status': '202', 'x-free': 'no' },
      ]
      await expectUsed(21, { refundIf, cost: () => 7 }, answers)
    })

    it('settle refunds or charges the difference', async () => {
      const settle = ((response: FinishedResponse) =>
        Number(response.header('x-used'))) as unknown as Options['settle']
      const of = (units: number) => ({ 'x-used': `${units}` })
      await expectUsed(3, { cost: () => 10, settle }, [of(3)])
      await expectUsed(25, { cost: () => 10, settle }, [of(25)])
      await expectUsed(0, { cost: () => 10, settle }, [of(0)])
      await expectUsed(14, { cost: () => 10, settle }, [of(10), of(4)])
    })

    it('a denied request settles nothing', async () => {
      let asked = 0
      const settle = () => ++asked
      const server = await serve(adapter, { limiter: limiterOf(1), key: () => 'k', settle })
      await (await ask(server)).text()
      await (await ask(server)).text()
      await until(() => asked === 1)
      await (await ask(server)).text()
      expect(asked).toBe(1)
    })

    it.each<[string, GuardOptions<Args>['settle'], unknown]>([
      ['an error in settle', () => Promise.reject(new Error('thrown by the user')), /thrown by the user/],
      ['units of NaN', () => Number.NaN, /settle returned NaN/],
      ['units below 0', () => -1, /settle returned -1/],
    ])('%s goes to onSettleError and leaves the response unchanged', async (_, settle, message) => {
      const told: unknown[] = []
      const server = await serveSettling({
        settle,
        onSettleError: ((error: unknown) => told.push(error)) as unknown as Options['onSettleError'],
      })
      const response = await ask(server)
      expect([response.status, await response.text()]).toEqual([200, 'served'])
      await until(() => told.length > 0)
      expect(told).toEqual([expect.objectContaining({ message: expect.stringMatching(message as RegExp) })])
      expect(server.errors).toEqual([])
    })

    it('a failed refund goes to onSettleError', async () => {
      const told: unknown[] = []
      const memory = newStore()
      let isDown = false
      const store: Store = {
        failurePolicy,
        apply(ops, call) {
          if (isDown) call.reject(new StoreUnavailableError('error', 'the store is down'))
          else memory.apply(ops, call)
        },
        close() {},
      }
      const settle = () => {
        isDown = true
        return 0
      }
      const limiter = createLimiter({ limits: [perMinute(5)], store, logger: false })
      const server = await serve(adapter, {
        ...{
          limiter,
          key: () => 'k',
          settle,
          onSettleError: ((error: unknown) => told.push(error)) as unknown as Options['onSettleError'],
        },
      })
      expect((await ask(server)).status).toBe(200)
      await until(() => told.length > 0)
      expect(told).toEqual([expect.any(StoreUnavailableError)])
    })

    it('onAllowed gets the decision before the request is handled', async () => {
      const told: number[] = []
      const onAllowed = (async ({ remaining }: Decision) =>
        told.push(remaining)) as unknown as Options['onAllowed']
      const server = await serve(adapter, { limits: [perMinute(2)], store: newStore(), onAllowed })
      for (let i = 0; i < 3; i++) await ask(server)
      expect(told).toEqual([1, 0])
    })

    function serveSettling(options: GuardOptions<Args>): Promise<Server> {
      return serve(adapter, { limits: [perMinute(5)], store: newStore(), ...options })
    }
  })
}
