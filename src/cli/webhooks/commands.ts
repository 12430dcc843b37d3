import type { Command } from 'commander'
import type { Environment } from '../../config.ts'
import { buildActions } from '../action.ts'
import { createFlag, databaseFlag, jsonFlag } from '../flags.ts'
import type { Terminal } from '../terminal.ts'

export function addWebhookCommands(program: Command, env: Environment, terminal: Terminal): void {
  const act = buildActions(env, terminal)
  const webhook = program.command('webhook').description('tell other services about new plants')

  webhook
    .command('add')
    .description('add a receiver and print its signing secret, once')
    .argument('<url>', 'where to send changes: http or https, without a password')
    .option('--types <types>', 'plant.created, plant.replaced, plant.deleted (plant.created)')
    .option('--from <position>', 'a position in the journal, or latest (latest)')
    .option(...createFlag)
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./add.ts')).addReceiver))

  webhook
    .command('list')
    .description('list every receiver, how far it is, and what failed last')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(act(async () => (await import('./list.ts')).listReceivers))

  addCommand('failures', 'list the changes that a receiver did not take').action(
    act(async () => (await import('./failures.ts')).listFailures),
  )
  addCommand('resend', 'send every failure again, or one change of the journal')
    .argument('[position]', 'the position of a change that is still kept (all failures)')
    .action(act(async () => (await import('./resend.ts')).resend))
  addCommand('test', 'send a signed sample, and print what came back').action(
    act(async () => (await import('./test.ts')).testReceiver),
  )
  addCommand(
    'rotate',
    'make a new secret and print it, once; the old one signs as well for 24 h',
  ).action(act(async () => (await import('./rotate.ts')).rotateSecret))
  addCommand('pause', 'send nothing more until the receiver is resumed').action(
    act(async () => (await import('./change.ts')).pauseReceiver),
  )
  addCommand('resume', 'go on where a paused receiver stopped').action(
    act(async () => (await import('./change.ts')).resumeReceiver),
  )
  addCommand('remove', 'forget a receiver and what it has yet to get').action(
    act(async () => (await import('./change.ts')).removeReceiver),
  )

  /** Adds a command about one receiver. */
  function addCommand(name: string, description: string): Command {
    return webhook
      .command(name)
      .description(description)
      .argument('<id>', 'the id that "webhook list" shows')
      .option(...jsonFlag)
      .option(...databaseFlag)
  }
}
