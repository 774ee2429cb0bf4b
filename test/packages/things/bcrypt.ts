import bcrypt from 'bcrypt'

export default () => async () => bcrypt.compare('a password', await bcrypt.hash('a password', 8))
