import { v7, validate } from 'uuid'

export default () => () => validate(v7())
