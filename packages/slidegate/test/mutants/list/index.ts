import type { Mutants } from '../mutant.ts'
import { ban } from './ban.ts'
import { decide } from './decide.ts'
import { distinctSketch } from './distinct-sketch.ts'
import { entryWindow } from './entry-window.ts'
import { fixedWindow } from './fixed-window.ts'
import { main } from './main.ts'
import { override } from './override.ts'
import { packedWindow } from './packed-window.ts'
import { prelude } from './prelude.ts'
import { rare } from './rare.ts'
import { slidingCounter } from './sliding-counter.ts'
import { streamWindow } from './stream-window.ts'
import { tokenBucket } from './token-bucket.ts'

/** Of every part of the script. */
export const MUTANTS: readonly Mutants[] = [
  ban,
  override,
  rare,
  streamWindow,
  slidingCounter,
  entryWindow,
  distinctSketch,
  packedWindow,
  fixedWindow,
  tokenBucket,
  main,
  decide,
  prelude,
]
