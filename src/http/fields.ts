import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyReply {
    /** The fields of the header that are settled so far: names and values in turn, as Node.js writes them. */
    fields: string[]
  }
}

/** Adds a field. What depends on several things says so in one field. */
export function addField(fields: string[], name: string, value: string): void {
  const vary = name === 'Vary' ? fields.indexOf(name) : -1
  if (vary === -1) fields.push(name, value)
  else fields[vary + 1] += `, ${value}`
}

/** Gives every reply its fields, and lets what Fastify sends carry them. */
export function addFields(app: FastifyInstance): void {
  app.decorateReply('fields')
  app.addHook('onSend', (_, reply, payload, done) => {
    const { fields } = reply
    for (let index = 0; index < fields.length; index += 2) {
      reply.header(fields[index] as string, fields[index + 1])
    }
    done(null, payload)
  })
}
