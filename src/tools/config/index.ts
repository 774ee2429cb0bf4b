// The tool `config`.
import type { Config, VariableOptions } from '../../contracts/config.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { isRuntimeSecret, parseBoolean, parseNumber } from '../../core/config/plugin-variables.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'

const SECRET =
  'is a secret of the runtime, which plugins do not see: take the tool that has it, or set a variable of another name for the plugin'

type Value = string | number | boolean
type ValueType = 'string' | 'number' | 'boolean'

const WANTED = { string: 'a text', number: 'a number', boolean: 'true or false' } as const

export default class ConfigTool implements Tool {
  readonly name = 'config'
  #runtime: ToolRuntime

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
  }

  api(): Config {
    const get = (name: string, options: VariableOptions = {}): Value => {
      if (typeof name !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
        throw new HeddleError('CONFIG_INVALID', `${JSON.stringify(name)} is not the name of a variable`)
      }
      const type = typeOf(name, options)
      const raw = this.#runtime.env(name)?.trim()
      // An empty variable counts as unset, as for the runtime's own variables.
      if (raw !== undefined && raw !== '') return parse(name, type, raw)
      if (options.default !== undefined) return options.default
      if (isRuntimeSecret(name)) throw new HeddleError('CONFIG_MISSING', `${name} ${SECRET}`)
      throw new HeddleError('CONFIG_MISSING', `${name} is not set: expected ${WANTED[type]}`)
    }
    return { get: get as Config['get'] }
  }
}

function typeOf(name: string, options: VariableOptions): ValueType {
  const ofDefault = options.default === undefined ? undefined : typeof options.default
  const type = options.type ?? ofDefault ?? 'string'
  if (!Object.hasOwn(WANTED, type)) {
    throw new HeddleError('CONFIG_INVALID', `${name}: expected the type string, number or boolean, got ${type}`)
  }
  if (ofDefault !== undefined && ofDefault !== type) {
    throw new HeddleError('CONFIG_INVALID', `${name}: expected a default of type ${type}, got a ${ofDefault}`)
  }
  return type as ValueType
}

/** No message repeats the text, because a plugin's variable may be a secret. */
function parse(name: string, type: ValueType, text: string): Value {
  const value = type === 'string' ? text : type === 'number' ? parseNumber(text) : parseBoolean(text)
  if (value === undefined) throw new HeddleError('CONFIG_INVALID', `${name} does not parse: expected ${WANTED[type]}`)
  return value
}
