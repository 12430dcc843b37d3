/** json-server: keeps plants in memory and rewrites its file after each change. */
import jsonServer from 'json-server'

const [path] = process.argv.slice(2)
const server = jsonServer.create()
server.use(jsonServer.defaults({ logger: false }))
server.use(jsonServer.bodyParser)
server.use(jsonServer.router(path))
const listener = server.listen(0, '127.0.0.1', () =>
  console.log(`address   http://127.0.0.1:${listener.address().port}`),
)
