node_modules
data
test
.env
*.env
.git
*.log
