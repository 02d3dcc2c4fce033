import fc from 'fast-check'
import { beforeEach } from 'vitest'
import { GROUPS } from './groups.js'

// The same histories for every mutant. A failure needn't be shrunk.
fc.configureGlobal({ seed: 7, endOnFailure: true })

const { skip } = GROUPS[process.env.MUTATION_GROUP!]!

beforeEach(({ task, skip: leaveOut }) => {
  if (skip?.test(`${task.suite?.name} ${task.fullTestName}`)) leaveOut()
})
