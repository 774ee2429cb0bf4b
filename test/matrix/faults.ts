/** What can go wrong. `text` is the body of a function. */
export interface Fault {
  name: string
  text: string
  /** Only where somebody can wait for the promise that it returns. */
  isAsync?: boolean
}

export const FAULTS: readonly Fault[] = [
  { name: 'throw', text: "throw new Error('planted')" },
  { name: 'rejection', text: "return Promise.reject(new Error('planted'))", isAsync: true },
  { name: 'rejection of nobody', text: "void Promise.reject(new Error('planted'))" },
  { name: "emitter's error", text: "connect({ port: 1, host: '127.0.0.1' })" },
  { name: 'endless loop', text: 'for (;;) kept.length = 0' },
  { name: 'loop of microtasks', text: 'const again = (): unknown => Promise.resolve().then(again); again()' },
  { name: 'loop of ticks', text: 'const again = (): unknown => process.nextTick(again); again()' },
  { name: 'never answers', text: 'return new Promise(() => {})', isAsync: true },
  { name: 'process.exit', text: 'process.exit(3)' },
  { name: 'process.abort', text: 'process.abort()' },
  { name: 'heap', text: "for (;;) kept.push({ n: kept.length, text: 'item ' + kept.length })" },
  { name: 'buffers', text: 'for (;;) kept.push(Buffer.alloc(1 << 20, 1))' },
  { name: 'descriptors', text: "try { for (;;) kept.push(openSync('/dev/null')) } catch {}" },
  {
    name: 'patched builtins',
    text: "JSON.stringify = JSON.parse = Array.prototype.map = () => { throw new Error('planted') }",
  },
  {
    name: 'threads of its own',
    text: "for (let n = 0; n < 4; n++) new Worker('for (;;);', { eval: true })",
  },
  { name: 'children of its own', text: "for (let n = 0; n < 4; n++) spawn('sleep', [MARK], { stdio: 'ignore' })" },
  { name: 'flood of logs', text: "setInterval(() => { for (let n = 0; n < 2000; n++) log('x'.repeat(200)) }, 1)" },
]
