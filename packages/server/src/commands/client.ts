import type { Command } from 'commander'
import { addConsumeCommand, addPeekCommand } from './ask.ts'
import { addBenchCommand } from './bench.ts'
import { addCaptureCommand } from './capture.ts'
import { addExplainCommand } from './explain.ts'
import { addBlockCommand, addResetCommand, addUnblockCommand } from './key-actions.ts'
import { addAuditCommand, addLimitersCommand, addTopCommand, addUsageCommand } from './looking.ts'
import { addOverrideCommand } from './override.ts'
import { addDrainCommand, addShadowCommand } from './steer.ts'
import { addTailCommand } from './tail.ts'

/** All that ask a service which runs already. */
export function addClientCommands(program: Command): void {
  addConsumeCommand(program)
  addPeekCommand(program)
  addExplainCommand(program)
  addLimitersCommand(program)
  addUsageCommand(program)
  addTopCommand(program)
  addTailCommand(program)
  addResetCommand(program)
  addBlockCommand(program)
  addUnblockCommand(program)
  addOverrideCommand(program)
  addShadowCommand(program)
  addDrainCommand(program)
  addAuditCommand(program)
  addCaptureCommand(program)
  addBenchCommand(program)
}
