import { compare, hash } from '@node-rs/bcrypt'

export default () => async () => compare('a password', await hash('a password', { cost: 8 }))
