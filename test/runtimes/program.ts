import { makeCalls } from './calls.ts'

const [, , url = '', token = '', base = ''] = process.argv
console.log(JSON.stringify(await makeCalls(url, token, BigInt(base))))
