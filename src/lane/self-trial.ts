import { type Debugger, Session } from 'node:inspector'
import { HeddleError } from '../core/errors/catalogue.ts'
import { messageOf } from '../core/errors/description.ts'
import { placeInSource, sourceMap } from '../core/errors/places.ts'

/** How often, milliseconds. One takes some 20 microseconds. */
const TRIAL_MS = 1000

/** What the runtime needs of what JavaScript brings: by its name, a use whose outcome is known. */
const USES: Record<string, () => boolean> = {
  'Array.from': () => Array.from('ab').length === 2,
  'Array.isArray': () => Array.isArray([]) && !Array.isArray({}),
  'Array.prototype.every': () => ![1, 2].every((n) => n < 2),
  'Array.prototype.filter': () => [1, 2].filter((n) => n > 1)[0] === 2,
  'Array.prototype.find': () => [1, 2].find((n) => n > 1) === 2,
  'Array.prototype.flatMap': () => [1, 2].flatMap((n) => [n, n]).length === 4,
  'Array.prototype.includes': () => [1, 2].includes(2),
  'Array.prototype.join': () => [1, 2].join('-') === '1-2',
  'Array.prototype.map': () => [1, 2].map((n) => n + 1)[1] === 3,
  'Array.prototype.push': () => [1].push(2) === 2,
  'Array.prototype.slice': () => [1, 2].slice(1)[0] === 2,
  'Array.prototype.some': () => [1, 2].some((n) => n > 1),
  'Array.prototype.sort': () => [2, 1].sort()[0] === 1,
  'Array.prototype.splice': () => [1, 2].splice(1)[0] === 2,
  'Array.prototype[Symbol.iterator]': () => [...[1, 2]].length === 2,
  'Buffer.byteLength': () => Buffer.byteLength('é') === 2,
  'Buffer.from': () => Buffer.from('ab').toString('hex') === '6162',
  'Date.now': () => Date.now() > 0,
  'Error.prototype': () => new HeddleError('HTTP_INTERNAL', 'x').message === 'x',
  'Function.prototype.call': () => faultOf.call(null, 'Date.now') === null,
  'JSON.parse': () => JSON.parse('{"a":1}').a === 1,
  'JSON.stringify': () => JSON.stringify({ a: [1] }) === '{"a":[1]}',
  'Map.prototype.get': () => new Map([[1, 2]]).get(1) === 2,
  'Map.prototype.has': () => new Map([[1, 2]]).has(1),
  'Map.prototype.set': () => new Map().set(1, 2).size === 1,
  'Math.max': () => Math.max(1, 2) === 2,
  'Math.min': () => Math.min(1, 2) === 1,
  'Object.assign': () => Object.assign({ a: 1 }, { b: 2 }).b === 2,
  'Object.entries': () => Object.entries({ a: 1 })[0]![1] === 1,
  'Object.fromEntries': () => Object.fromEntries([['a', 1]]).a === 1,
  'Object.keys': () => Object.keys({ a: 1 })[0] === 'a',
  'Object.values': () => Object.values({ a: 1 })[0] === 1,
  'Promise.prototype.then': () => Promise.resolve().then(() => {}) instanceof Promise,
  'RegExp.prototype.exec': () => /(b)/.exec('ab')![1] === 'b',
  'RegExp.prototype.test': () => /b/.test('ab'),
  'Set.prototype.add': () => new Set().add(1).size === 1,
  'Set.prototype.has': () => new Set([1]).has(1),
  'String.prototype.endsWith': () => 'ab'.endsWith('b'),
  'String.prototype.includes': () => 'ab'.includes('b'),
  'String.prototype.indexOf': () => 'ab'.indexOf('b') === 1,
  'String.prototype.replace': () => 'ab'.replace('b', 'c') === 'ac',
  'String.prototype.slice': () => 'ab'.slice(1) === 'b',
  'String.prototype.split': () => 'a,b'.split(',')[1] === 'b',
  'String.prototype.startsWith': () => 'ab'.startsWith('a'),
  'String.prototype.toLowerCase': () => 'AB'.toLowerCase() === 'ab',
  'String.prototype.trim': () => ' a '.trim() === 'a',
  clearTimeout: () => clearTimeout(setTimeout(() => {}, 1)) === undefined,
  queueMicrotask: () => queueMicrotask(() => {}) === undefined,
  setImmediate: () => clearImmediate(setImmediate(() => {})) === undefined,
}

/** Somebody has broken what JavaScript brings. `stack` names where the code stands that is there instead; empty where that is not known. */
interface Broken {
  message: string
  stack: string
}

/**
 * Tries whether what JavaScript brings still does what it should: a plugin that replaces or freezes it in its lane fails the requests of all.
 * What has not held from the start says nothing: all lanes are so. Made before the first plugin is loaded.
 */
export class SelfTrial {
  readonly #names = Object.keys(USES).filter((name) => faultOf(name) === null)

  /** Null while nothing is broken. */
  look(): Broken | null {
    const names = this.#names
    // By hand: what would walk through the list may be broken.
    for (let n = 0; n < names.length; n++) {
      const fault = faultOf(names[n]!)
      if (fault !== null) return { message: `${names[n]} is broken: ${fault}`, stack: placeOf(names[n]!) }
    }
    return null
  }

  /** From now on it is tried regularly. */
  start(onBroken: (broken: Broken) => void): void {
    const timer = setInterval(() => {
      const broken = this.look()
      if (broken === null) return
      clearInterval(timer)
      onBroken(broken)
    }, TRIAL_MS).unref()
  }
}

function faultOf(name: string): string | null {
  try {
    return USES[name]!() ? null : 'it does not do what it should'
  } catch (thrown) {
    return messageOf(thrown)
  }
}

/** Where the function of that name was written, as a line of a stack; empty where it is JavaScript's own. */
function placeOf(name: string): string {
  const scripts: Record<string, Debugger.ScriptParsedEventDataType> = {}
  let at: Debugger.Location | undefined
  const session = new Session()
  try {
    session.connect()
  } catch {
    // LANE_PERMISSIONS keeps the lane from it, on a Node that has no flag for it.
    return ''
  }
  session.on('Debugger.scriptParsed', ({ params }) => {
    scripts[params.scriptId] = params
  })
  // A session with one's own thread answers before it returns.
  session.post('Debugger.enable')
  session.post('Runtime.evaluate', { expression: name }, (_, { result: { objectId = '' } }) => {
    session.post('Runtime.getProperties', { objectId, ownProperties: true }, (_, { internalProperties = [] }) => {
      for (let n = 0; n < internalProperties.length; n++) {
        if (internalProperties[n]!.name === '[[FunctionLocation]]') at = internalProperties[n]!.value?.value
      }
    })
  })
  session.disconnect()
  try {
    const { url, sourceMapURL } = scripts[at!.scriptId]!
    const { file, line, column } = placeInSource(url, sourceMap(sourceMapURL), at!.lineNumber, at!.columnNumber ?? 0)
    return `    at ${name} (${file}:${line}:${column})`
  } catch {
    // It is JavaScript's own, or what is broken is needed here.
    return ''
  }
}
