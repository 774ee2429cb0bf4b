interface WasmMemory {
  readonly buffer: ArrayBufferLike
}

/** The shared memory that this thread has made: V8 counts it for no thread. What a WebAssembly module makes by itself is left out. */
export class SharedBuffers {
  /** As far as it is known without a look: with what has become garbage, and without what has grown. */
  bytes = 0
  readonly #made = new Set<WeakRef<SharedArrayBuffer | WasmMemory>>()

  /** Counts what is made from now on. */
  watch(): void {
    counted('SharedArrayBuffer', globalThis, (made: SharedArrayBuffer) => this.#add(made))
    counted('Memory', Reflect.get(globalThis, 'WebAssembly'), (made: WasmMemory) => {
      if (made.buffer instanceof SharedArrayBuffer) this.#add(made)
    })
  }

  #add(made: SharedArrayBuffer | WasmMemory): void {
    this.bytes += bytesOf(made)
    this.#made.add(new WeakRef(made))
  }

  /** Looks at all that is left, which then stays until the end of this turn of the loop: after a collection of garbage, not before one. */
  look(): void {
    this.bytes = 0
    for (const reference of this.#made) {
      const each = reference.deref()
      if (each === undefined) this.#made.delete(reference)
      else this.bytes += bytesOf(each)
    }
  }
}

const bytesOf = (each: SharedArrayBuffer | WasmMemory): number =>
  'buffer' in each ? each.buffer.byteLength : each.byteLength

/** Puts a proxy in place of a class, which is told of all that is made: `instanceof`, subclasses, `slice` and clones know no difference. */
function counted<Made extends object>(name: string, holder: object, onMade: (made: Made) => void): void {
  const plain = Reflect.get(holder, name) as new () => Made
  const proxy = new Proxy(plain, {
    construct: (target, args, newTarget) => {
      const made = Reflect.construct(target, args, newTarget) as Made
      onMade(made)
      return made
    },
  })
  // Frozen, it cannot be: then what is made by `slice` is not counted.
  Reflect.defineProperty(plain.prototype, 'constructor', { value: proxy, writable: true, configurable: true })
  Reflect.defineProperty(holder, name, { value: proxy, writable: true, configurable: true })
}
