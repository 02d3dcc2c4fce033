import { type CustomDecorator, SetMetadata } from '@nestjs/common'
import { HOST_METADATA, PATH_METADATA, VERSION_METADATA } from '@nestjs/common/constants.js'
import { Reflector } from '@nestjs/core'
import type { GuardOptions } from '../../http/options.ts'
import type { NestArguments } from './platform.ts'

// What decorators say of classes and methods.

/** A class, or a method of one. */
export type Decorated = Parameters<Reflector['get']>[1]

const OPTIONS = 'slidegate:options'
const SKIP = 'slidegate:skip'

const reflector = new Reflector()

export function setOptions(options: object): CustomDecorator {
  return SetMetadata(OPTIONS, options)
}

export function optionsOf(decorated: Decorated): GuardOptions<NestArguments> | undefined {
  return reflector.get(OPTIONS, decorated)
}

export function setSkip(skips: boolean): CustomDecorator {
  return SetMetadata(SKIP, skips)
}

/** A method knows best, and to be limited by options of its own is to be limited. */
export function isSkipped(controller: Decorated, handler: Decorated): boolean {
  const own: boolean | undefined = reflector.get(SKIP, handler)
  return own ?? (optionsOf(handler) === undefined && reflector.get(SKIP, controller) === true)
}

/** The same in all processes; classes of one name are told apart by what they are bound to. */
export function nameOf(controller: Decorated): string {
  const bound = [PATH_METADATA, VERSION_METADATA, HOST_METADATA].map((key) => reflector.get(key, controller))
  return JSON.stringify([controller.name, ...bound])
}
