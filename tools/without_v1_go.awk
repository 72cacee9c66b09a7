# Leaves out of Go the lines that end in the mark of version 1, and the comment right above such a line, which is of what
# the line declares.
/\/\/ v1-line$/  { comment = ""; next }
/^[ \t]*\/\//    { comment = comment $0 "\n"; next }
                 { printf "%s%s\n", comment, $0; comment = "" }
END              { printf "%s", comment }
