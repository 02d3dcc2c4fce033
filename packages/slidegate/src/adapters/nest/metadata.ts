// The metadata that the decorators set on classes and methods.
import { type CustomDecorator, SetMetadata, type Type } from '@nestjs/common'
import { HOST_METADATA, PATH_METADATA, VERSION_METADATA } from '@nestjs/common/constants.js'
import { MetadataScanner, Reflector } from '@nestjs/core'
import type { GuardOptions } from '../../http/options.ts'
import type { NestArguments } from './platform.ts'

/** A class, or a method of one. */
export type Decorated = Parameters<Reflector['get']>[1]

const OPTIONS = 'slidegate:options'
const SKIP = 'slidegate:skip'

const reflector = new Reflector()
const scanner = new MetadataScanner()

export function setOptions(options: object): CustomDecorator {
  return SetMetadata(OPTIONS, options)
}

export function optionsOf(decorated: Decorated): GuardOptions<NestArguments> | undefined {
  return reflector.get(OPTIONS, decorated)
}

export function setSkip(skips: boolean): CustomDecorator {
  return SetMetadata(SKIP, skips)
}

/** Whether the handler is exempt. A decorator on the handler overrides a decorator on its class. */
export function isSkipped(controller: Decorated, handler: Decorated): boolean {
  return reflector.getAllAndOverride<boolean | undefined>(SKIP, [handler, controller]) === true
}

/** Returns a name that is the same in all processes. Path, version and host distinguish classes with the same name. */
export function nameOf(controller: Decorated): string {
  const bound = [PATH_METADATA, VERSION_METADATA, HOST_METADATA].map((key) => reflector.get(key, controller))
  return JSON.stringify([controller.name, ...bound])
}

/** Returns the method's name in its class. Other decorators may have wrapped it in a function with another name. */
export function methodOf({ prototype }: Type, handler: Decorated): string {
  return scanner.getAllMethodNames(prototype).find((name) => prototype[name] === handler) ?? handler.name
}
