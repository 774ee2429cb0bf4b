import { Ajv } from 'ajv'

const isOrder = new Ajv().compile({ type: 'object', properties: { count: { type: 'integer', minimum: 1 } } })

export default () => () => [isOrder({ count: 1 }), isOrder({ count: 0 })]
