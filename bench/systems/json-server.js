/** json-server: keeps everything in memory and writes the whole file again after each change. */
import jsonServer from 'json-server'

const [path] = process.argv.slice(2)
const server = jsonServer.create()
server.use(jsonServer.defaults({ logger: false }))
server.use(jsonServer.bodyParser)
server.use(jsonServer.router(path))
const listener = server.listen(0, '127.0.0.1', () =>
  console.log(`address   http://127.0.0.1:${listener.address().port}`),
)
