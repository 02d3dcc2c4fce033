import { after, settle } from './at-once.ts'
import type { Answered, HandlerArguments } from './binding.ts'
import type { DenialAnswer } from './denial-body.ts'
import type { Denial, Guard } from './guard.ts'
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

/** Lets through whom the guard admits. */
export function gate<Args extends HandlerArguments>(
  responses: Responses<Args>,
): (guard: Guard<Args>, ...args: Args) => void {
  function admits(guard: Guard<Args>, args: Args): boolean | PromiseLike<boolean> {
    return after(guard(...args), ({ headers, denial, over }) => {
      placeHeaders(headers, responses.fields(...args))
      if (over !== undefined) responses.whenOver(over, ...args)
      if (denial === undefined) return true
      return after(deny(denial, args), () => false)
    })
  }

  function deny(denial: Denial, args: Args): unknown {
    if (denial.action === 'drop') return responses.drop(...args)
    const fields = responses.fields(...args)
    for (const { name, value } of denial.headers) fields.set(name, value)
    return denial.action === 'custom' ? denial.answer() : responses.answer(denial, ...args)
  }

  // What is thrown downstream of next() is not ours to handle. And no promise is returned, for Express 5 would
  // pass its rejection to next once more.
  return (guard, ...args) => {
    const next = responses.next(...args)
    settle(
      () => admits(guard, args),
      (admitted) => {
        if (admitted) next()
      },
      next,
    )
  }
}
