import cluster from 'node:cluster'
import { readEmbedded } from './embedded.ts'
import { main } from './main.ts'

/** The main program of the executable. In a checkout it is bin/plant-store.js. */
const [, command = '', ...args] = process.argv
// Node starts workers with the path of a script, and an executable has none.
if (cluster.isPrimary && args[0] !== undefined) {
  cluster.setupPrimary({ exec: args[0], args: args.slice(1), execArgv: [] })
}
const { version } = JSON.parse(readEmbedded('package.json'))
void main({ version, command })
