/** The one file of prom-client that is needed: the whole package loads ten times as long. */
declare module 'prom-client/lib/registry.js' {
  import { Registry } from 'prom-client'
  export = Registry
}
