/**
 * The part of Fastify that the baseline uses. Its own types are not there in a checkout that never
 * ran the benchmark.
 */
declare module 'fastify' {
  import type { Server } from 'node:http'

  interface Request<Route> {
    readonly headers: { readonly authorization?: string }
    readonly body: Route extends { Body: infer Body } ? Body : unknown
    readonly params: Route extends { Params: infer Params } ? Params : unknown
    readonly query: Route extends { Querystring: infer Query } ? Query : unknown
  }

  interface Reply {
    code(status: number): Reply
    send(body: unknown): Reply
  }

  type Handler<Route> = (request: Request<Route>, reply: Reply) => Promise<unknown>

  interface AddRoute {
    (path: string, run: Handler<unknown>): void
    <Route>(path: string, options: { schema: object }, run: Handler<Route>): void
  }

  interface App {
    readonly server: Server
    addHook(name: 'onRequest', run: Handler<unknown>): void
    readonly get: AddRoute
    readonly post: AddRoute
    listen(address: { port: number; host: string }): Promise<string>
  }

  export function fastify(): App
}
