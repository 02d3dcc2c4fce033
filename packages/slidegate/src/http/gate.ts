import { asError, isPending } from './at-once.ts'
import type { Answered, HandlerArguments } from './binding.ts'
import type { DenialAnswer } from './denial-body.ts'
import type { Denial, Guard, Verdict } from './guard.ts'
import { type HeaderAccess, placeHeaders } from './headers.ts'

/** How verdicts are carried out on the responses of a framework that goes on by a callback. */
export interface Responses<Args extends HandlerArguments> {
  fields(...args: Args): HeaderAccess
  /** Tells what became of the response, once it has been sent or the client is gone. */
  whenOver(over: (response: Answered) => void, ...args: Args): void
  /** Answers a request that is not handled; the fields are set. */
  answer(answer: DenialAnswer, ...args: Args): unknown
  /** Closes the connection without an answer. */
  drop(...args: Args): unknown
  /** Goes on to the handler, or to those who handle errors. */
  next(...args: Args): (error?: Error) => void
}

/** Lets through whom the guard admits. No promise is returned: Express 5 would pass its rejection to next once more. */
export function gate<Args extends HandlerArguments>(
  responses: Responses<Args>,
): (guard: Guard<Args>, ...args: Args) => void {
  function carryOut({ headers, denial, over }: Verdict, args: Args): void {
    let answered: unknown
    try {
      placeHeaders(headers, responses.fields(...args))
      if (over !== undefined) responses.whenOver(over, ...args)
      if (denial !== undefined) answered = deny(denial, args)
    } catch (reason) {
      fail(reason, args)
      return
    }
    // What is thrown downstream of next() is not ours to handle.
    if (denial === undefined) responses.next(...args)()
    // A reply of Fastify has a then, too, which calls whatever it is given.
    else if (isPending(answered)) answered.then(ignore, (reason) => fail(reason, args))
  }

  function deny(denial: Denial, args: Args): unknown {
    if (denial.action === 'drop') return responses.drop(...args)
    const fields = responses.fields(...args)
    for (const { name, value } of denial.headers) fields.set(name, value)
    return denial.action === 'custom' ? denial.answer() : responses.answer(denial, ...args)
  }

  function fail(reason: unknown, args: Args): void {
    responses.next(...args)(asError(reason))
  }

  return (guard, ...args) => {
    let verdict: Verdict | PromiseLike<Verdict>
    try {
      verdict = guard(...args)
    } catch (reason) {
      fail(reason, args)
      return
    }
    if (!isPending(verdict)) carryOut(verdict, args)
    else
      verdict.then(
        (known) => carryOut(known, args),
        (reason) => fail(reason, args),
      )
  }
}

function ignore(): void {}
