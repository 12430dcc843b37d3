import type { Command } from 'commander'
import { type Environment, type Flags, readConfig } from '../../config.ts'
import { createFlag, databaseFlag, jsonFlag } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import type { AddFlags } from './add.ts'

type JsonFlags = Flags & { readonly json?: boolean }

export function addWebhookCommands(program: Command, env: Environment, terminal: Terminal): void {
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
    .action(async (url: string, flags: AddFlags & Flags) => {
      const { addReceiver } = await import('./add.ts')
      await addReceiver(url, flags, readConfig(flags, env), terminal)
    })

  webhook
    .command('list')
    .description('list every receiver, how far it is, and what failed last')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(async (flags: JsonFlags) => {
      const { listReceivers } = await import('./list.ts')
      await listReceivers(flags, readConfig(flags, env), terminal)
    })

  webhook
    .command('failures')
    .description('list the changes that a receiver did not take')
    .argument('<id>', receiverId)
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(async (id: string, flags: JsonFlags) => {
      const { listFailures } = await import('./failures.ts')
      await listFailures(id, flags, readConfig(flags, env), terminal)
    })

  webhook
    .command('resend')
    .description('send every failure again, or one change of the journal')
    .argument('<id>', receiverId)
    .argument('[position]', 'the position of a change that is still kept (all failures)')
    .option(...jsonFlag)
    .option(...databaseFlag)
    .action(async (id: string, position: string | undefined, flags: JsonFlags) => {
      const { resend } = await import('./resend.ts')
      await resend(id, position, flags, readConfig(flags, env), terminal)
    })

  for (const [name, description] of Object.entries(changes)) {
    webhook
      .command(name)
      .description(description)
      .argument('<id>', receiverId)
      .option(...jsonFlag)
      .option(...databaseFlag)
      .action(async (id: string, flags: JsonFlags) => {
        const change = await loadChange(name as keyof typeof changes)
        await change(id, flags, readConfig(flags, env), terminal)
      })
  }
}

const receiverId = 'the id that "webhook list" shows'

const changes = {
  test: 'send a signed sample, and print what came back',
  rotate: 'make a new secret and print it, once; the old one signs as well for 24 h',
  pause: 'send nothing more until the receiver is resumed',
  resume: 'go on where a paused receiver stopped',
  remove: 'forget a receiver and what it has yet to get',
}

async function loadChange(name: keyof typeof changes) {
  if (name === 'test') return (await import('./test.ts')).testReceiver
  if (name === 'rotate') return (await import('./rotate.ts')).rotateSecret
  const { pauseReceiver, resumeReceiver, removeReceiver } = await import('./change.ts')
  return { pause: pauseReceiver, resume: resumeReceiver, remove: removeReceiver }[name]
}
