import { applyDecorators, UseGuards } from '@nestjs/common'
import type { GuardOptions } from '../../http/options.ts'
import { RateLimitGuard } from './guard.ts'
import { setOptions, setSkip } from './metadata.ts'
import type { HttpRequest, HttpResponse, NestArguments } from './platform.ts'

/**
 * What differs for a class or a method from the options around it: those of its class, and those of the module. Limits of its
 * own count for it alone: those of a class for its routes together. It limits what it stands on in any case.
 */
export function RateLimit<Request = HttpRequest, Response = HttpResponse>(
  options: GuardOptions<NestArguments<Request, Response>>,
): ClassDecorator & MethodDecorator {
  return applyDecorators(setOptions(options), setSkip(false), UseGuards(RateLimitGuard))
}

/** The class or the method is not limited by the module; `false`: it is, though its class is not. */
export function SkipRateLimit(skips = true): ClassDecorator & MethodDecorator {
  return setSkip(skips)
}
