const LIST = '/zod/v4/locales/index.cjs'
/** One of the languages in zod's list of them. */
const LANGUAGE =
  /^var (\w+) = require\(("[^"]+")\);\nObject\.defineProperty\(exports, ("\w+"), \{ enumerable: true, get: function \(\) \{ return __importDefault\(\1\)\.default; \} \}\);$/gm
/** The end of the list, which reads each of them, and freezes what it has read. */
const SEAL = /^\/\/ seal-cjs-exports\n[\s\S]*$/m

/**
 * Lets zod load a language when it is asked for. It loads all of them at its start, some fifty files and a megabyte of each thread, of which a service needs
 * one, if any. What a language is, and that the list cannot be changed, stays as it is.
 */
exports.languagesOnDemand = (path, body) =>
  path.endsWith(LIST)
    ? body
        .replace(
          LANGUAGE,
          '\nObject.defineProperty(exports, $3, { enumerable: true, get: function () { return __importDefault(require($2)).default; } });',
        )
        .replace(SEAL, 'Object.freeze(exports);\n')
    : body
