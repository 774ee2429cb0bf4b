/** Name → address of the module that is meant. */
let names = {}

export function initialize(data) {
  names = data
}

/** Runs in Node's own thread for loading: see `heddle-name.cjs`. */
export function resolve(specifier, context, next) {
  return next(names[specifier] ?? specifier, context)
}
